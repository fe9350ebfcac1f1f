#!/bin/sh
# A program that nobody has made executable.
sleep "${FAIL_AFTER:-1}"
echo done
