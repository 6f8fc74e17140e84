#include "tools/page_head.hpp"

#include <string_view>

namespace shoal::tools {

namespace {

constexpr std::string_view head = R"~(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>@TITLE@</title>
<style>
:root { color-scheme: light dark; --ink: #1b1f24; --soft: #5a6472; --back: #fafafa; --card: #ffffff; --line: #dde1e6; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e8eb; --soft: #9aa4b1; --back: #14171a; --card: #1d2125; --line: #343a41; } }
body { margin: 0 auto; padding: 1.2rem; max-width: 1500px; background: var(--back); color: var(--ink); font: 15px/1.45 system-ui, sans-serif; }
h1 { font-size: 1.4rem; margin: 0 0 .2rem; }
h2 { font-size: 1.1rem; margin: 1.6rem 0 .6rem; }
p, li { color: var(--soft); margin: .2rem 0; overflow-wrap: anywhere; }
ul { margin: .6rem 0; padding: 0; list-style: none; display: flex; flex-wrap: wrap; gap: .3rem 1.2rem; }
li b { display: inline-block; width: 1.4em; height: .35em; border-radius: .2em; vertical-align: middle; margin-right: .4em; }
.panels { display: grid; gap: .8rem; margin-bottom: .6rem; grid-template-columns: repeat(auto-fill, minmax(min(100%, 340px), 1fr)); }
figure { margin: 0; padding: .3rem; background: var(--card); border: 1px solid var(--line); border-radius: 8px; }
svg { display: block; width: 100%; height: auto; font-family: system-ui, sans-serif; }
svg text { fill: var(--ink); } svg .back { fill: var(--card); } svg .grid { stroke: var(--line); }
.table { overflow-x: auto; background: var(--card); border: 1px solid var(--line); border-radius: 8px; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { padding: .35rem .8rem; text-align: right; white-space: nowrap; border-bottom: 1px solid var(--line); }
tr:last-child td { border-bottom: 0; }
code { overflow-wrap: anywhere; }
pre { overflow-x: auto; margin: 0; padding: .8rem; background: var(--card); border: 1px solid var(--line); border-radius: 8px; }
.table + p { margin-top: .8rem; }
</style>
</head>
<body>
)~";

} // namespace

std::string page_head(const std::string& title) {
  std::string out(head);
  out.replace(out.find("@TITLE@"), 7, title);
  return out;
}

} // namespace shoal::tools
