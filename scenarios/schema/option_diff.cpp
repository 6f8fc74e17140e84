#include "scenarios/schema/option_diff.hpp"

#include <algorithm>

namespace shoal::scenarios {

namespace {

bool is_list_of_mappings(const node& what) {
  return what.kind == node_kind::sequence && !what.items.empty() &&
         std::all_of(what.items.begin(), what.items.end(),
                     [](const node_ptr& item) { return item->kind == node_kind::mapping; });
}

struct options {
  std::map<std::string, std::string> values;
  std::map<std::string, std::vector<std::string>> lists; // items on one line each

  void add(const std::string& path, const node& what) {
    if (what.kind == node_kind::mapping) {
      for (const entry& item : what.entries)
        if (!path.empty() || !item.key.starts_with("x-"))
          add(path.empty() ? item.key : path + "." + item.key, *item.value);
    } else if (is_list_of_mappings(what)) {
      for (const node_ptr& item : what.items) lists[path].push_back(on_one_line(*item));
    } else {
      values[path] = on_one_line(what);
    }
  }
};

options options_of(const document& from) {
  options out;
  if (from.root) out.add("", *from.root);
  return out;
}

/// The items of `from` that `other` lacks, counting repetitions.
std::vector<std::string> without(std::vector<std::string> from, std::vector<std::string> other) {
  for (const std::string& item : other)
    if (const auto found = std::find(from.begin(), from.end(), item); found != from.end())
      from.erase(found);
  return from;
}

} // namespace

std::string on_one_line(const node& what) {
  std::string out;
  switch (what.kind) {
  case node_kind::null:
    return "";
  case node_kind::scalar:
    return what.text;
  case node_kind::sequence:
    for (const node_ptr& item : what.items) out += (out.empty() ? "" : ", ") + on_one_line(*item);
    return "[" + out + "]";
  case node_kind::mapping:
    for (const entry& item : what.entries)
      out += (out.empty() ? "" : ", ") + item.key + ": " + on_one_line(*item.value);
    return "{" + out + "}";
  }
  return out;
}

std::map<std::string, std::string> option_values(const document& of) {
  return options_of(of).values;
}

std::vector<option_difference> diff_options(const document& a, const document& b) {
  const options of_a = options_of(a), of_b = options_of(b);
  std::vector<option_difference> out;
  const auto value = [](const options& in, const std::string& path) {
    const auto found = in.values.find(path);
    return found == in.values.end() ? std::nullopt : std::optional(found->second);
  };
  auto paths = of_a.values;
  paths.insert(of_b.values.begin(), of_b.values.end());
  for (const auto& [path, text] : paths)
    if (auto left = value(of_a, path), right = value(of_b, path); left != right)
      out.push_back({path, std::move(left), std::move(right)});

  const auto items = [](const options& in, const std::string& path) {
    const auto found = in.lists.find(path);
    return found == in.lists.end() ? std::vector<std::string>{} : found->second;
  };
  auto lists = of_a.lists;
  lists.insert(of_b.lists.begin(), of_b.lists.end());
  for (const auto& [path, ignored] : lists) {
    for (std::string& item : without(items(of_a, path), items(of_b, path)))
      out.push_back({path, std::move(item), std::nullopt});
    for (std::string& item : without(items(of_b, path), items(of_a, path)))
      out.push_back({path, std::nullopt, std::move(item)});
  }
  return out;
}

} // namespace shoal::scenarios
