"""Programs that run a peer in its own environment: `python run_X.py MESH.npz VARIANT STEPS`.

They import nothing of softrig (it is not installed there) and print one line that begins with RESULT: JSON with
`preprocessing` (seconds), `steps` and `vertices` (lists of seconds), `freedoms`, `note` and `moved` (metres).
"""
