"""The live viewer: a character or a body that moves in the browser while it is pulled, tuned, painted and built."""
