"""This program's version. To ask the installed package for it takes milliseconds."""

VERSION = "0.1.0"
