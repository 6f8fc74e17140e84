#include "tools/command_tree.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <sstream>
#include <utility>

namespace shoal::tools {

namespace {

/// The words of '…:{hf,safetensors}', as which CLI11 describes a list of possible values.
std::vector<std::string> choices_in(const std::string& type) {
  const auto open = type.find(":{"), close = type.rfind('}');
  if (open == std::string::npos || close == std::string::npos) return {};
  std::vector<std::string> out;
  std::istringstream words(type.substr(open + 2, close - open - 2));
  for (std::string word; std::getline(words, word, ',');) out.push_back(word);
  return out;
}

listed_option::kind value_kind_of(const std::string& type) {
  const auto has = [&](const char* word) { return type.find(word) != std::string::npos; };
  if (has("FILE") || has("PATH") || has("CKPT")) return listed_option::kind::file;
  return has("DIR") ? listed_option::kind::folder : listed_option::kind::word;
}

listed_option listed(const CLI::Option& option) {
  listed_option out;
  out.long_names = option.get_lnames();
  out.short_names = option.get_snames();
  if (out.long_names.empty() && out.short_names.empty())
    out.argument = option.get_name(true); // a positional argument
  out.meaning = option.get_description();
  out.required = option.get_required();
  if (option.get_type_size_max() == 0) return out; // a flag
  out.value = option.get_type_name();
  out.default_value = option.get_default_str();
  out.choices = choices_in(out.value);
  out.takes = out.choices.empty() ? value_kind_of(out.value) : listed_option::kind::word;
  return out;
}

listed_command listed(const CLI::App& app, std::vector<std::string> path) {
  listed_command out{std::move(path), app.get_description(), {}, {}};
  const auto add = [&](const CLI::App& from) {
    for (const auto* option : from.get_options()) out.options.push_back(listed(*option));
  };
  add(app);
  for (const auto* below : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (below->get_name().empty()) { // a group of options
      add(*below);
      continue;
    }
    auto longer = out.path;
    longer.push_back(below->get_name());
    out.commands.push_back(listed(*below, std::move(longer)));
  }
  return out;
}

void collect(const listed_command& from, std::vector<const listed_command*>& into) {
  into.push_back(&from);
  for (const auto& below : from.commands) collect(below, into);
}

} // namespace

listed_command command_tree(const CLI::App& app) {
  return listed(app, {});
}

const listed_command* command_at(const listed_command& tree, const std::vector<std::string>& path) {
  const auto* at = &tree;
  for (const auto& name : path) {
    const auto found =
        std::find_if(at->commands.begin(), at->commands.end(),
                     [&](const listed_command& below) { return below.path.back() == name; });
    if (found == at->commands.end()) return nullptr;
    at = &*found;
  }
  return at;
}

std::vector<const listed_command*> all_commands(const listed_command& tree) {
  std::vector<const listed_command*> out;
  collect(tree, out);
  return out;
}

} // namespace shoal::tools
