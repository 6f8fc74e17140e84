#include "tools/man_page.hpp"

#include "tools/exit_codes.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

namespace shoal::tools {

namespace {

/// `text` without meaning for roff. A dash is one that can be copied into a shell.
std::string plain(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else if (c == '\'')
      out += "\\(aq";
    else if (c == '"')
      out += "\\(dq";
    else
      out += c;
  }
  return out.starts_with('.') ? "\\&" + out : out;
}

/// A bold text and a cursive one.
std::string bold(std::string_view text) {
  return fmt::format("\\fB{}\\fR", plain(text));
}
std::string cursive(std::string_view text) {
  return fmt::format("\\fI{}\\fR", plain(text));
}

std::string heading(const listed_option& option) {
  std::string out;
  const auto add = [&](const std::string& name) { out += (out.empty() ? "" : ", ") + bold(name); };
  for (const auto& name : option.short_names) add("-" + name);
  for (const auto& name : option.long_names) add("--" + name);
  if (!option.argument.empty()) out = cursive(option.argument);
  if (!option.value.empty() && option.argument.empty()) out += " " + cursive(option.value);
  return out;
}

std::string entry(const listed_option& option) {
  std::string out = ".TP\n" + heading(option) + "\n" + plain(option.meaning);
  if (!option.choices.empty())
    out += plain(fmt::format(" (one of {})", fmt::join(option.choices, ", ")));
  if (!option.default_value.empty())
    out += plain(fmt::format(" (default: {})", option.default_value));
  if (option.required) out += " (required)";
  return out + "\n";
}

} // namespace

std::string man_page_name(const listed_command& of) {
  return of.path.empty() ? "shoal" : fmt::format("shoal-{}", fmt::join(of.path, "-"));
}

std::string man_page(const listed_command& command, std::string_view version) {
  const auto name = man_page_name(command);
  auto upper = name;
  std::transform(upper.begin(), upper.end(), upper.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  const auto typed = command.path.empty() ? std::string("shoal")
                                          : fmt::format("shoal {}", fmt::join(command.path, " "));
  std::string out = fmt::format(".TH {} 1 \"\" \"shoal {}\" Shoal\n.ad l\n.SH NAME\n{} \\- {}\n",
                                plain(upper), version, plain(name), plain(command.meaning));
  out += ".SH SYNOPSIS\n" + bold(typed);
  const auto is_argument = [](const listed_option& o) { return !o.argument.empty(); };
  if (!command.commands.empty()) out += " " + cursive("COMMAND") + " ...";
  if (!std::all_of(command.options.begin(), command.options.end(), is_argument))
    out += " [" + cursive("OPTION") + "]...";
  for (const auto& option : command.options)
    if (is_argument(option))
      out +=
          option.required ? " " + cursive(option.argument) : " [" + cursive(option.argument) + "]";
  out += "\n";
  if (!command.commands.empty()) {
    out += ".SH COMMANDS\n";
    for (const auto& below : command.commands)
      out += fmt::format(".TP\n{}(1)\n{}\n", bold(man_page_name(below)), plain(below.meaning));
  }
  if (!command.options.empty()) {
    out += ".SH OPTIONS\n";
    for (const bool arguments : {true, false})
      for (const auto& option : command.options)
        if (is_argument(option) == arguments) out += entry(option);
  }
  const std::pair<int, const char*> statuses[] = {
      {exit_ok, "success"},
      {exit_bad_input, "a scenario, file or directory cannot be used"},
      {exit_usage, "the command line is wrong"},
      {exit_run_failed, "the run could not go on, or missed an expectation"},
      {exit_interrupted, "Ctrl-C ended the run early"}};
  out += ".SH EXIT STATUS\n";
  for (const auto& [status, meaning] : statuses)
    out += fmt::format(".TP\n{}\n{}\n", bold(std::to_string(status)), plain(meaning));
  out += ".SH SEE ALSO\n";
  auto above = command;
  if (!above.path.empty()) {
    above.path.pop_back();
    out += fmt::format("{}(1)\n", bold(man_page_name(above)));
  } else {
    out += plain("The folder docs of the sources explains scenarios, metrics and run directories.");
    out += "\n";
  }
  return out;
}

} // namespace shoal::tools
