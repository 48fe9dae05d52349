"""placeholder"""

HTML = "<!doctype html><title>mlca</title>"
POLICY = "default-src 'none'"
