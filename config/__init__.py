"""Settings from the environment and tenants from files."""
