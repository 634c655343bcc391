"""The compiled steps: flat arrays in, flat arrays out, nothing allocated."""
