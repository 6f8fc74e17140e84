#include "tools/first_words.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace shoal::tools {

namespace {

/// A whole command for each command that needs a second word.
constexpr std::pair<std::string_view, std::string_view> examples[] = {
    {"keys", "shoal keys init reef --swarm reef"},
    {"bench", "shoal bench averaging --peers 64 --failure 5%"},
    {"trace", "shoal trace info peers.csv"},
    {"images", "shoal images prepare pictures --table captions.tsv -o my.pictures"},
    {"tokenizer", "shoal tokenizer train book.txt --vocab 512 --out words.json"},
    {"model", "shoal model info model.safetensors"}};

constexpr std::pair<std::string_view, std::string_view> first_commands[] = {
    {"shoal run scenarios/quickstart.yaml", "try this first: sixteen volunteers, half a minute"},
    {"shoal new my-swarm", "write a scenario of your own"},
    {"shoal check my-swarm.yaml", "find its mistakes"},
    {"shoal serve DIR", "look at a run that --out DIR kept, in a browser"},
    {"shoal promote my-swarm.yaml", "take it to real hosts"}};

} // namespace

std::string first_words() {
  std::string out =
      "Shoal trains one model on many computers that do not know each other, simulated "
      "and real.\n\n";
  for (const auto& [command, purpose] : first_commands)
    out += fmt::format("  {:<37} {}\n", command, purpose);
  return out + "\n'shoal help' lists all commands, and 'shoal help COMMAND' the options of one.\n";
}

std::string words_that_may_follow(const CLI::App& app, const std::vector<std::string>& arguments) {
  if (arguments.size() != 1) return {};
  for (const auto* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (command->get_name() != arguments.front()) continue;
    const auto followers = command->get_subcommands([](const CLI::App*) { return true; });
    if (command->get_require_subcommand_min() == 0 || followers.empty()) return {};
    std::size_t width = 0;
    for (const auto* each : followers) width = std::max(width, each->get_name().size());
    std::string out = fmt::format("shoal {}: {}. One of these words follows:\n",
                                  command->get_name(), command->get_description());
    for (const auto* each : followers)
      out += fmt::format("  {:<{}}  {}\n", each->get_name(), width, each->get_description());
    for (const auto& [name, example] : examples)
      if (name == command->get_name()) out += fmt::format("For example: {}\n", example);
    return out + fmt::format("'shoal help {} WORD' lists the options.\n", command->get_name());
  }
  return {};
}

} // namespace shoal::tools
