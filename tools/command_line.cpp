#include "tools/command_line.hpp"

#include "scenarios/schema/diagnostic.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <optional>
#include <regex>

namespace shoal::tools {

namespace {

/// Whether leaving out letters of `whole` makes `word`.
bool shortens(const std::string& word, const std::string& whole) {
  std::size_t found = 0;
  for (char c : whole)
    if (found < word.size() && word[found] == c) ++found;
  return found == word.size();
}

/// The option nearest to `word`: '--sed' is '--seed' without a letter, not '--set'.
std::optional<std::string> meant_option(const std::string& word,
                                        const std::vector<std::string>& known) {
  std::optional<std::string> out;
  for (const auto& name : known) {
    const bool likely =
        name.starts_with(word) || (shortens(word, name) && name.size() <= word.size() + 2);
    if (word.size() > 1 && likely && (!out || name.size() < out->size())) out = name;
  }
  return out ? out : scenarios::closest(word, known);
}

} // namespace

std::vector<std::string> without_help_command(std::vector<std::string> arguments) {
  if (arguments.empty() || arguments.front() != "help") return arguments;
  arguments.erase(arguments.begin());
  arguments.emplace_back("--help");
  return arguments;
}

std::string unknown_command(const CLI::App& app, const std::vector<std::string>& arguments) {
  if (arguments.empty() || arguments.front().starts_with('-')) return {};
  const auto& word = arguments.front();
  std::vector<std::string> known;
  for (const auto* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (command->check_name(word)) return {};
    known.push_back(command->get_name());
  }
  std::error_code ignored;
  return fmt::format(
      "unknown command '{}'; {}", word,
      scenarios::did_you_mean(word, known,
                              std::filesystem::is_regular_file(word, ignored)
                                  ? fmt::format("did you mean 'run {}'?", word)
                                  : fmt::format("the commands are {}", fmt::join(known, ", "))));
}

const CLI::App& innermost(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  return chosen.empty() ? app : innermost(*chosen.front());
}

std::string help_for(const CLI::App& app) {
  std::string out = "help";
  for (const auto* at = &app; !at->get_subcommands().empty();) {
    at = at->get_subcommands().front();
    out += " " + at->get_name();
  }
  return out;
}

std::string unknown_option(const CLI::App& app) {
  const CLI::App& command = innermost(app);
  for (const auto& word : app.remaining(true)) {
    if (!word.starts_with('-') || word.size() < 2) continue;
    const auto name = word.substr(0, word.find('='));
    std::vector<std::string> known;
    for (const auto* option : command.get_options())
      for (const auto& long_name : option->get_lnames()) known.push_back(long_name);
    std::string out = fmt::format("unknown option {}", name);
    if (name.starts_with("--"))
      if (const auto meant = meant_option(name.substr(2), known))
        out += fmt::format("; did you mean --{}?", *meant);
    return out;
  }
  return {};
}

std::string parse_error_text(const CLI::App& app, const CLI::ParseError& error) {
  std::string said = error.what();
  std::smatch part;
  // CLI11 prints the limits of whole numbers with six decimals.
  if (std::regex_match(
          said, part,
          std::regex(R"((.+): Value (.*) not in range (-?\d+)(\.\d+)? to (-?\d+)(\.\d+)?)"))) {
    const auto limit = [](const std::string& whole, std::string decimals) {
      while (!decimals.empty() && (decimals.back() == '0' || decimals.back() == '.'))
        decimals.pop_back();
      return whole + decimals;
    };
    return fmt::format("{}: '{}' is no number from {} to {}", part.str(1), part.str(2),
                       limit(part[3], part[4]), limit(part[5], part[6]));
  }
  // Text needs no conversion.
  if (std::regex_match(said, part, std::regex(R"(Could not convert: (\S+) = (.*))")))
    return fmt::format("{}: '{}' is no number", part.str(1), part.str(2));
  if (dynamic_cast<const CLI::RequiredError*>(&error) == nullptr) return said;
  const CLI::App& command = innermost(app);
  std::string form = "shoal" + help_for(app).substr(4);
  for (const auto* option : command.get_options(
           [](const CLI::Option* o) { return o->get_positional() || o->get_required(); })) {
    std::string one = option->get_name(option->get_positional());
    if (option->get_positional())
      std::transform(one.begin(), one.end(), one.begin(),
                     [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    else
      one += " " + (option->get_type_name().empty() ? "VALUE" : option->get_type_name());
    form += option->get_required() ? " " + one : " [" + one + "]";
  }
  return fmt::format("{}: {} [OPTION]...", said, form);
}

} // namespace shoal::tools
