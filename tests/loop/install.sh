#!/usr/bin/env bash
# Install lm-evaluation-harness and inspect_ai, each into a virtual environment of its own below
# the folder $1. What cannot be installed is noted there, and its loop is skipped with that reason.
set -uo pipefail
folder=$1
python=${PYTHON:-python3}
mkdir -p "$folder"

install() {
  local name=$1
  shift
  [ -e "$folder/$name/.ready" ] && return
  rm -f "$folder/$name.unavailable"
  for requirement in "$@"; do
    [ -d "$folder/$name" ] || "$python" -m venv "$folder/$name"
    if ! "$folder/$name/bin/pip" install --quiet --disable-pip-version-check $requirement \
      2>"$folder/$name.log"; then
      echo "$requirement cannot be installed: $(grep -m1 -i error "$folder/$name.log")" \
        >"$folder/$name.unavailable"
      return
    fi
  done
  touch "$folder/$name/.ready"
}

install lm-eval 'torch==2.13.0' 'lm-eval[hf]==0.4.13'
install inspect 'inspect-ai==0.3.285'
