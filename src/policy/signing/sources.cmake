list(APPEND policy_sources signing/signers.cc)
list(APPEND policy_headers signing/signers.h)
