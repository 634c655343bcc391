"""Files: meshes, models and pictures, in and out."""
