"""Bodies that move: full and reduced behind one protocol, their runtimes and the model file."""
