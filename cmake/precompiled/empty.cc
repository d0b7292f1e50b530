// Carries the precompiled header; has nothing of its own.
