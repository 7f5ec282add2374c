# Stands in for nginx in the examples: something that serves until it is stopped.
FROM busybox:1.36
CMD ["sh", "-c", "trap 'exit 0' TERM; mkdir -p /tmp/www; httpd -f -p 80 -h /tmp/www & wait"]
