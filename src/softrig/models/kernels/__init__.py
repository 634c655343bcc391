"""The compiled steps: arrays in, arrays out; those of anchored bodies allocate nothing."""
