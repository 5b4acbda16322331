# Filled when the public headers settle.
