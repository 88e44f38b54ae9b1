"""The shell: everything that awaits. One file per arrow of the design."""
