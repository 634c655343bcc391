"""Files in and out: characters (glTF), motion (BVH), point caches, USD, pictures."""
