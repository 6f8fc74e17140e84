# The include checker; check_includes feeds it the names of all source files, sorted. Plain POSIX awk,
# because Debian has it everywhere.

BEGIN {
  # Which folders a folder may include, besides itself. The longest matching prefix names a file's folder.
  allow["kernels/base"] = ""
  allow["kernels"] = "kernels/base"
  allow["kernels/learn"] = "kernels kernels/base"
  allow["netem"] = "kernels/base"
  allow["actors"] = "kernels kernels/learn kernels/base"
  allow["scenarios"] = "kernels kernels/learn kernels/base netem actors"
  allow["tools"] = "kernels kernels/learn kernels/base netem actors scenarios"
  allow["tests"] = "kernels kernels/learn kernels/base netem actors scenarios tools"

  # Which folders may include a library, directly or through a header of ours.
  library["torch"] = library["ATen"] = library["c10"] = library["caffe2"] = "kernels/learn tests"
  library["caf"] = "netem actors scenarios tools tests"
  library["microhttpd.h"] = "scenarios/inference scenarios/observe scenarios/page"
  library["openssl"] = "netem/wire tests"
  library["simgrid"] = library["gloo"] = library["doctest"] = library["benchmark"] = "tests"
}

function contains(words, word) { return index(" " words " ", " " word " ") > 0 }

# The folder of the rules that `file` belongs to, or "".
function folder_of(file, prefix) {
  prefix = file
  while (sub(/\/[^\/]*$/, "", prefix))
    if (prefix in allow) return prefix
  return ""
}

# Whether `file` stands in one of the folders `words`, which may be deeper than those of the rules.
function in_folders(file, words, list, count, i) {
  count = split(words, list, " ")
  for (i = 1; i <= count; i++)
    if (index(file, list[i] "/") == 1) return 1
  return 0
}

function report(file, line, text) {
  printf "%s:%d: error: %s\n", file, line, text
  errors++
}

# The library that an include in angle brackets names, if a rule is about it.
function library_of(name) {
  sub(/\/.*/, "", name)
  return name in library ? name : ""
}

# `line` without comments; `in_comment` carries a block comment from line to line. String literals are not
# looked at: no include directive holds one with a comment mark in it.
function strip_comments(line, start, end) {
  if (in_comment) {
    end = index(line, "*/")
    if (!end) return ""
    line = substr(line, end + 2)
    in_comment = 0
  }
  while (match(line, /\/[\/*]/)) {
    start = RSTART
    if (substr(line, start, 2) == "//") return substr(line, 1, start - 1)
    end = index(substr(line, start + 2), "*/")
    if (!end) {
      in_comment = 1
      return substr(line, 1, start - 1)
    }
    line = substr(line, 1, start - 1) " " substr(line, start + 2 + end + 1)
  }
  return line
}

# Reads one file: its includes into edge_to[], edge_line[], and its libraries into uses[].
function read_file(file, line, number, pragma, name, status) {
  in_comment = 0
  while ((status = (getline line < file)) > 0) {
    number++
    sub(/\r$/, "", line)
    line = strip_comments(line)
    if (line !~ /^[ \t]*#/) continue
    if (line ~ /^[ \t]*#[ \t]*pragma[ \t]+once/) pragma = 1
    if (line !~ /^[ \t]*#[ \t]*include/) continue
    if (!match(line, /["<][^">]+[">]/)) {
      report(file, number, "an include that is not a plain file name cannot be checked")
      continue
    }
    name = substr(line, RSTART + 1, RLENGTH - 2)
    edge_count[file]++
    edge_to[file, edge_count[file]] = name
    edge_line[file, edge_count[file]] = number
    edge_quoted[file, edge_count[file]] = substr(line, RSTART, 1) == "\""
  }
  if (status < 0) report(file, 0, "cannot be read")
  close(file)
  if (file ~ /\.hpp$/ && !pragma) report(file, 1, "a header needs '#pragma once'")
}

# Checks the includes of `file` themselves. Bad ones are marked, so that they are not reported again for
# everyone who includes them.
function check_direct(file, i, name, target, own) {
  own = file
  sub(/\.cpp$/, ".hpp", own)
  for (i = 1; i <= edge_count[file]; i++) {
    name = edge_to[file, i]
    if (!(name in known)) {
      target = library_of(name)
      if (edge_quoted[file, i] && name !~ /^generated\//) {
        report(file, edge_line[file, i], "'" name "' is not a header of this tree; include ours from the root, libraries with <>")
      } else if (target != "" && !in_folders(file, library[target])) {
        report(file, edge_line[file, i], "<" name "> may be included only in " library[target])
        bad[file, i] = 1
      }
      continue
    }
    if (name !~ /\.hpp$/) report(file, edge_line[file, i], "'" name "' is not a header")
    target = folder_of(name)
    if (target != folder_of(file) && !contains(allow[folder_of(file)], target)) {
      report(file, edge_line[file, i], folder_of(file) "/ must not include " target "/ ('" name "')")
      bad[file, i] = 1
    }
  }
  if (own == file || !(own in known)) return
  if (edge_to[file, 1] != own)
    report(file, edge_count[file] >= 1 ? edge_line[file, 1] : 1, "'" own "' has to be the first include, which shows that it compiles alone")
}

# Follows the includes of `file` breadth first, and reports the shortest chain to what it must not reach.
function check_transitive(file, queue, head, tail, via, seen, origin, i, node, name, target, chain, key) {
  split("", seen)
  split("", via)
  split("", origin)
  tail = 1
  queue[1] = file
  seen[file] = 1
  for (head = 1; head <= tail; head++) {
    node = queue[head]
    for (i = 1; i <= edge_count[node]; i++) {
      name = edge_to[node, i]
      if (node == file && ((file, i) in bad)) continue
      chain = node == file ? "" : via[node] " -> "
      if (!(name in known)) {
        target = library_of(name)
        if (node != file && target != "" && !in_folders(file, library[target])) {
          key = "<" target ">"
          if (key in seen) continue
          seen[key] = 1
          report(file, origin[node], "reaches <" name "> through " via[node])
        }
        continue
      }
      if (name in seen) continue
      seen[name] = 1
      via[name] = chain name
      origin[name] = node == file ? edge_line[file, i] : origin[node]
      target = folder_of(name)
      if (node != file && target != folder_of(file) && !contains(allow[folder_of(file)], target)) {
        report(file, origin[name], folder_of(file) "/ must not reach " target "/: " via[name])
        continue
      }
      queue[++tail] = name
    }
  }
}

{
  files[++count] = $0
  known[$0] = 1
}

END {
  for (f = 1; f <= count; f++)
    if (folder_of(files[f]) == "") report(files[f], 1, "belongs to no folder that has a rule")
  for (f = 1; f <= count; f++) read_file(files[f])
  for (f = 1; f <= count; f++) check_direct(files[f])
  for (f = 1; f <= count; f++) check_transitive(files[f])
  if (errors) printf "%d include error%s in %d files\n", errors, errors == 1 ? "" : "s", count
  exit errors > 0
}
