#include "tools/completion.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string_view>

namespace shoal::tools {

namespace {

using value_kind = listed_option::kind;

/// `text` as one word of bash and zsh.
std::string quoted_word(std::string_view text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

/// `text` as one word of fish.
std::string fish_word(std::string_view text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' || c == '\\' ? std::string{'\\', c} : std::string{c};
  return out + "'";
}

std::string path_text(const listed_command& of) {
  return fmt::format("{}", fmt::join(of.path, " "));
}

/// The names of an option as they are typed.
std::vector<std::string> typed_names(const listed_option& option) {
  std::vector<std::string> out;
  for (const auto& name : option.long_names) out.push_back("--" + name);
  for (const auto& name : option.short_names) out.push_back("-" + name);
  return out;
}

/// The patterns of the paths of all commands below the program, as `case` has them.
std::string command_patterns(const listed_command& tree) {
  std::string out;
  for (const auto* command : all_commands(tree)) {
    if (command->path.empty()) continue;
    // The path so far, a space and the word: ' bench' and 'bench averaging'.
    const std::string before = command->path.size() == 1 ? " " : "";
    out += (out.empty() ? "" : "|") + quoted_word(before + path_text(*command));
  }
  return out;
}

/// The arms of a `case` over "$command $previous", one for each option with a value.
template <class Arm>
std::string value_arms(const listed_command& tree, Arm arm) {
  std::string out;
  for (const auto* command : all_commands(tree))
    for (const auto& option : command->options) {
      if (option.takes == value_kind::nothing || !option.argument.empty()) continue;
      std::string patterns;
      for (const auto& name : typed_names(option))
        patterns += (patterns.empty() ? "" : "|") + quoted_word(path_text(*command) + " " + name);
      out += fmt::format("    {}) {} ;;\n", patterns, arm(option));
    }
  return out;
}

std::vector<std::string> words_after(const listed_command& command) {
  std::vector<std::string> out;
  for (const auto& below : command.commands) out.push_back(below.path.back());
  if (command.path.empty()) out.emplace_back("help");
  return out;
}

std::vector<std::string> option_words(const listed_command& command) {
  std::vector<std::string> out;
  for (const auto& option : command.options)
    for (const auto& name : typed_names(option)) out.push_back(name);
  return out;
}

} // namespace

std::string bash_completion(const listed_command& tree) {
  std::string out = "# Completion of shoal for bash, made by: shoal completion bash\n"
                    "_shoal() {\n"
                    "  local current=${COMP_WORDS[COMP_CWORD]} command='' options='' words='' i\n"
                    "  local previous=${COMP_WORDS[COMP_CWORD-1]}\n"
                    "  # bash splits --option=value at the sign.\n"
                    "  if [[ $current == '=' ]]; then\n"
                    "    current=''\n"
                    "  elif [[ $previous == '=' && COMP_CWORD -gt 1 ]]; then\n"
                    "    previous=${COMP_WORDS[COMP_CWORD-2]}\n"
                    "  fi\n"
                    "  for ((i = 1; i < COMP_CWORD; ++i)); do\n"
                    "    [[ ${COMP_WORDS[i]} == help && -z $command ]] && continue\n"
                    "    case \"$command ${COMP_WORDS[i]}\" in\n";
  out += fmt::format("    {}) command+=${{command:+ }}${{COMP_WORDS[i]}} ;;\n",
                     command_patterns(tree));
  out += "    esac\n"
         "  done\n"
         "  COMPREPLY=()\n"
         "  case \"$command $previous\" in\n";
  out += value_arms(tree, [](const listed_option& option) -> std::string {
    if (!option.choices.empty())
      return fmt::format("COMPREPLY=($(compgen -W {} -- \"$current\")); return",
                         quoted_word(fmt::format("{}", fmt::join(option.choices, " "))));
    if (option.takes == value_kind::file) return "return";
    if (option.takes == value_kind::folder) return "compopt -o dirnames 2>/dev/null; return";
    return "compopt +o default 2>/dev/null; return"; // a number or a name
  });
  out += "  esac\n"
         "  case \"$command\" in\n";
  for (const auto* command : all_commands(tree))
    out += fmt::format("    {}) words={} options={} ;;\n", quoted_word(path_text(*command)),
                       quoted_word(fmt::format("{}", fmt::join(words_after(*command), " "))),
                       quoted_word(fmt::format("{}", fmt::join(option_words(*command), " "))));
  return out + "  esac\n"
               "  [[ $current == -* ]] && words=$options\n"
               "  COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
               "}\n"
               "complete -o default -F _shoal shoal\n";
}

std::string zsh_completion(const listed_command& tree) {
  // _describe splits a word from its meaning at the first colon.
  const auto described = [](const std::string& word, const std::string& meaning) {
    return quoted_word(word + ":" + meaning);
  };
  std::string out = "#compdef shoal\n"
                    "# Completion of shoal for zsh, made by: shoal completion zsh\n"
                    "_shoal() {\n"
                    "  local command='' previous=${words[CURRENT-1]}\n"
                    "  local -a found options\n"
                    "  integer i\n"
                    "  for ((i = 2; i < CURRENT; ++i)); do\n"
                    "    [[ ${words[i]} == help && -z $command ]] && continue\n"
                    "    case \"$command ${words[i]}\" in\n";
  out += fmt::format("    {}) command+=${{command:+ }}${{words[i]}} ;;\n", command_patterns(tree));
  out += "    esac\n"
         "  done\n"
         "  case \"$command $previous\" in\n";
  out += value_arms(tree, [](const listed_option& option) -> std::string {
    if (!option.choices.empty())
      return fmt::format("compadd -- {}; return", fmt::join(option.choices, " "));
    if (option.takes == value_kind::file) return "_files; return";
    if (option.takes == value_kind::folder) return "_files -/; return";
    return fmt::format("_message {}; return", quoted_word(option.value));
  });
  out += "  esac\n"
         "  case \"$command\" in\n";
  for (const auto* command : all_commands(tree)) {
    std::string words, options;
    for (const auto& below : command->commands)
      words += " " + described(below.path.back(), below.meaning);
    if (command->path.empty()) words += " " + described("help", "the options of a command");
    for (const auto& option : command->options)
      for (const auto& name : typed_names(option)) options += " " + described(name, option.meaning);
    out += fmt::format("    {})\n      found=({})\n      options=({}) ;;\n",
                       quoted_word(path_text(*command)), words.empty() ? words : words.substr(1),
                       options.empty() ? options : options.substr(1));
  }
  return out + "  esac\n"
               "  if [[ $PREFIX == -* ]]; then\n"
               "    _describe -o option options\n"
               "  elif (( ${#found} )); then\n"
               "    _describe command found\n"
               "  else\n"
               "    _files\n"
               "  fi\n"
               "}\n"
               "_shoal \"$@\"\n";
}

std::string fish_completion(const listed_command& tree) {
  std::string out = "# Completion of shoal for fish, made by: shoal completion fish\n";
  for (const auto* command : all_commands(tree)) {
    std::string condition;
    for (const auto& word : command->path)
      condition +=
          (condition.empty() ? "" : "; and ") + fmt::format("__fish_seen_subcommand_from {}", word);
    const auto own = condition;
    if (!command->commands.empty()) {
      std::vector<std::string> below = words_after(*command);
      condition += (condition.empty() ? "" : "; and ") +
                   fmt::format("not __fish_seen_subcommand_from {}", fmt::join(below, " "));
      for (const auto& one : command->commands)
        out += fmt::format("complete -c shoal -n {} -f -a {} -d {}\n", fish_word(condition),
                           one.path.back(), fish_word(one.meaning));
      if (command->path.empty())
        out += fmt::format("complete -c shoal -n {} -f -a help -d 'the options of a command'\n",
                           fish_word(condition));
    }
    for (const auto& option : command->options) {
      if (!option.argument.empty()) continue;
      out += "complete -c shoal";
      if (const auto& when = command->path.empty() ? condition : own; !when.empty())
        out += " -n " + fish_word(when);
      for (const auto& name : option.long_names) out += " -l " + name;
      for (const auto& name : option.short_names) out += " -s " + name;
      if (!option.choices.empty())
        out +=
            fmt::format(" -x -a {}", fish_word(fmt::format("{}", fmt::join(option.choices, " "))));
      else if (option.takes == value_kind::file)
        out += " -r -F";
      else if (option.takes == value_kind::folder)
        out += " -x -a '(__fish_complete_directories)'";
      else if (option.takes == value_kind::word)
        out += " -x";
      out += fmt::format(" -d {}\n", fish_word(option.meaning));
    }
  }
  return out;
}

} // namespace shoal::tools
