#!/bin/sh
# Stands in for any program: does what the file beside it says. Tests link to this one rather than
# write an executable of their own, since a file that another thread's child still has open for
# writing cannot be started.
. "$0.script"
