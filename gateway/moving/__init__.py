"""`chat-chat tenants export` and `import`: a shop moves to another installation."""
