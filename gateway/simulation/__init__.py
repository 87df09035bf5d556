"""`chat-chat simulate`: a conversation played against a tenant's file, with no platform, key or server."""
