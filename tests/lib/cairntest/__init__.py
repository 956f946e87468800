"""What the tests with real processes share. Standard library only, so that they run on a bare machine.

node      a cairnd of one's own, in a temporary directory, on its own ports
s3        a small S3 client with SigV4 that can also do what SDKs refuse to do
payload   bytes that can be made and checked without keeping them
guest     a virtual machine with Debian's own kernel that sees the host's files
suite     unittest's base class with a node, and running programs with a time limit
"""
