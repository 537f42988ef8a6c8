// Owns what test_headers precompiles.
