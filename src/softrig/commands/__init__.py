"""The commands, a module each; `softrig.cli` puts them together. Heavy imports wait until a command needs them."""
