// Completions and manual pages say what `shoal help` says.
#include "tests/support/program.hpp"
#include "tests/support/skip.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

using namespace shoal;

namespace {

std::set<std::string> words_of(const std::string& text) {
  std::istringstream in(text);
  std::set<std::string> out;
  for (std::string word; in >> word;) out.insert(word);
  return out;
}

/// The first words of the lines below `heading` in a help text, up to an empty line.
std::set<std::string> listed_below(const std::string& help, const std::string& heading) {
  std::istringstream in(help.substr(help.find(heading) + heading.size()));
  std::set<std::string> out;
  std::string line;
  std::getline(in, line);
  while (std::getline(in, line) && !line.empty()) {
    // A meaning goes on in lines that are indented further.
    if (line.size() > 2 && line[2] != ' ') out.insert(*words_of(line.substr(2, 20)).begin());
  }
  return out;
}

std::set<std::string> long_options(const std::string& help) {
  std::set<std::string> out;
  for (std::size_t at = 0; (at = help.find("--", at)) != std::string::npos;) {
    auto end = help.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-", at);
    const bool starts = at > 0 && (help[at - 1] == ' ' || help[at - 1] == ',');
    const bool heads = help.rfind('\n', at) != std::string::npos &&
                       at - help.rfind('\n', at) < 8; // not in the midst of a meaning
    if (starts && heads) out.insert(help.substr(at, end - at));
    at = end;
  }
  return out;
}

struct bash_session : scratch_folder {
  bash_session() {
    REQUIRE(run_program(path, "completion bash >c.bash").status == 0);
    std::ofstream(path / "try.bash") << "source ./c.bash\n"
                                        "COMP_WORDS=(shoal \"$@\") COMP_CWORD=$#\n"
                                        "_shoal\n"
                                        "echo \"${COMPREPLY[*]}\"\n";
  }
  std::set<std::string> offered(const std::string& words) const {
    const auto said = run_program(path, "--version >v; bash --norc try.bash " + words);
    REQUIRE_MESSAGE(said.status == 0, said.text);
    return words_of(said.text);
  }
};

using words = std::set<std::string>;

} // namespace

TEST_CASE("bash completes commands and options and values as the program has them") {
  bash_session here;
  CHECK(here.offered("be") == words{"bench"});
  CHECK(here.offered("help ben") == words{"bench"});
  CHECK(here.offered("bench av") == words{"averaging"});
  CHECK(here.offered("bench averaging --agg") == words{"--aggregator"});
  CHECK(here.offered("export r --format ''") == words{"hf", "safetensors"});
  CHECK(here.offered("export r --format = s") == words{"safetensors"});
  CHECK(here.offered("completion ''") == words{});
  CHECK(here.offered("run --out ''") == words{}); // the shell completes folders itself
  auto commands = listed_below(run_program(here.path, "help").text, "Subcommands:");
  REQUIRE(commands.size() > 20);
  auto offered = here.offered("''");
  CHECK(offered.erase("help") == 1);
  CHECK(offered == commands);
  for (const char* command : {"run", "explain", "bench averaging", "keys init"}) {
    const auto help = run_program(here.path, std::string("help ") + command).text;
    const auto own = long_options(help);
    REQUIRE_MESSAGE(own.size() > 2, help);
    auto options = here.offered(std::string(command) + " --");
    CHECK_MESSAGE(options == own, command);
  }
}

TEST_CASE("zsh and fish accept their completions") {
  scratch_folder here;
  const auto zsh = run_program(here.path, "completion zsh");
  CHECK(zsh.text.starts_with("#compdef shoal\n"));
  CHECK(zsh.has("'averaging:"));
  const auto fish = run_program(here.path, "completion fish");
  CHECK(fish.has("complete -c shoal -n '__fish_seen_subcommand_from bench; and "
                 "__fish_seen_subcommand_from averaging' -l peers -x"));
  CHECK(fish.has(" -l format -x -a 'hf safetensors'"));
  bool some = false;
  for (const std::string shell : {"zsh", "fish"}) {
    if (std::system(("command -v " + shell + " >/dev/null").c_str()) != 0) continue;
    some = true;
    const auto said =
        run_program(here.path, "completion " + shell + " >c; " + shell + " --no-execute c");
    CHECK_MESSAGE(said.status == 0, said.text);
    CHECK(said.text == "");
  }
  if (!some) SHOAL_SKIP("neither zsh nor fish is there to read the scripts");
}

TEST_CASE("manual pages have the options of help and no mistake for groff") {
  scratch_folder here;
  const auto all = run_program(here.path, "man --all pages");
  REQUIRE_MESSAGE(all.status == 0, all.text);
  for (const char* page : {"shoal.1", "shoal-run.1", "shoal-bench-averaging.1"})
    CHECK(std::filesystem::exists(here.path / "pages" / page));
  const auto wrong = run_program(here.path, "man bench averagin");
  CHECK(wrong.status == 2);
  CHECK(wrong.has("there is no command 'bench averagin'"));
  if (std::system("command -v groff >/dev/null") != 0) SHOAL_SKIP("groff is missing");
  const auto warned = run_program(here.path, "--version >v; groff -man -ww -z pages/*.1");
  CHECK_MESSAGE(warned.text == "", warned.text);
  const auto read =
      run_program(here.path, "--version >v; groff -man -Tascii -P-cbou pages/shoal-run.1");
  REQUIRE(read.status == 0);
  for (const auto& option : long_options(run_program(here.path, "help run").text))
    CHECK_MESSAGE(read.has(option), option);
  CHECK(read.has("EXIT STATUS"));
}
