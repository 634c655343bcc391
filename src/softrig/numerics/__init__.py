"""Small dense and large sparse linear algebra that everything else stands on."""
