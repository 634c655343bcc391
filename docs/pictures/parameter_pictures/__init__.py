"""The pictures of the parameter pages, a module a page; `make_parameters.py` writes them."""
