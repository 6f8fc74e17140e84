// The program itself: new, run, diff, replay and generate, as a user calls them.
#include "tests/scenarios/compare/helpers.hpp"
#include "tests/support/program.hpp"

using shoal::program_outcome, shoal::run_program;
using namespace shoal::scenarios;
using namespace shoal::scenarios::test;

namespace {

struct workplace : scratch {
  program_outcome shoal(const std::string& arguments) const { return run_program(path, arguments); }
  /// A scenario s.yaml of three peers and one minute, without numbers.
  workplace() {
    const auto made = shoal("new s --peers 3 --workload timing --minutes 1 --yes");
    REQUIRE_MESSAGE(made.status == 0, made.text);
  }
};

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

const std::string one_fault =
    R"( --set faults='[{kill: process, select: home-*, on: all_reduce.half_sent, nth: 2}]')";

} // namespace

TEST_CASE("a wrong command line ends with exit status 2") {
  scratch temp;
  for (const char* wrong : {"diff",
                            "diff a",
                            "diff a b c",
                            "diff a b --yaml",
                            "replay",
                            "replay a b",
                            "replay a --workers 0",
                            "new",
                            "new a --peers 0",
                            "new a --peers many",
                            "new a --workload llama",
                            "new a --churn lots",
                            "new a --minutes -1",
                            "new 'a b'",
                            "new ''",
                            "generate",
                            "generate a --tokens 0",
                            "generate a --tokens x",
                            "generate a --temperature",
                            "generate a --seed -x"}) {
    INFO(wrong);
    const auto out = run_program(temp.path, wrong);
    CHECK(out.status == 2);
    CHECK(!out.text.empty());
  }
  CHECK(std::filesystem::is_empty(temp.path));
}

TEST_CASE("the version is the project's, and run.yaml has it") {
  workplace here;
  const auto version = here.shoal("--version");
  CHECK(version.status == 0);
  REQUIRE(version.text.starts_with("shoal "));
  REQUIRE(here.shoal("run s.yaml -q --out r --until 2s").status == 0);
  const std::string yaml = read_file(here.path / "r/run.yaml").value();
  CHECK(has(yaml,
            "shoal: \"" + version.text.substr(6, version.text.find_first_of(" \n", 6) - 6) + "\""));
  CHECK(has(yaml, "until: 2s"));
}

TEST_CASE("new writes a scenario that check accepts, never over another one") {
  workplace here;
  CHECK(here.shoal("check s.yaml").status == 0);
  const auto again = here.shoal("new s --peers 5 --yes");
  CHECK(again.status == 1);
  CHECK(has(again.text, "--force"));
  CHECK(has(here.shoal("check s.yaml").text, "3 peers"));
  CHECK(here.shoal("new s.yaml --peers 5 --workload timing --force").status ==
        0); // no terminal: no questions
  CHECK(has(here.shoal("check s.yaml").text, "5 peers"));
  CHECK(here.shoal("new none/s --yes").status == 1);
  CHECK(!std::filesystem::exists(here.path / "none"));
}

TEST_CASE("replay says that a run comes out the same, and leaves nothing unless asked") {
  workplace here;
  REQUIRE(here.shoal("run s.yaml -q --out r --until 40s").status == 0);
  const auto same = here.shoal("replay r -q");
  CHECK_MESSAGE(same.status == 0, same.text);
  CHECK(has(same.text, "event hash is the same"));
  CHECK(here.shoal("replay r -q --out again").status == 0);
  CHECK(here.shoal("diff r again").status == 0);
  CHECK(here.shoal("replay r -q --out again").status == 1);
  CHECK(here.shoal("replay r -q --out r --force").status == 1);
  CHECK(here.shoal("replay none").status == 1);
}

TEST_CASE("replay of a changed run.yaml names the first event that differs, and another version") {
  workplace here;
  REQUIRE(here.shoal("run s.yaml -q --out r --until 40s --set record.events=all").status == 0);
  std::string yaml = read_file(here.path / "r/run.yaml").value();
  const auto replace = [&](const std::string& from, const std::string& to) {
    REQUIRE(has(yaml, from));
    yaml.replace(yaml.find(from), from.size(), to);
    write(here.path / "r/run.yaml", yaml);
  };
  replace("shoal: \"", "shoal: \"0.0.");
  replace("up: 10Mbit", "up: 9Mbit");
  const auto out = here.shoal("replay r -q");
  CHECK(out.status == 3);
  CHECK(has(out.text, "made by shoal 0.0."));
  CHECK(has(out.text, "event hash differs"));
  CHECK(has(out.text, "are the same before"));
  replace("group_size:", "croup_size:");
  const auto refused = here.shoal("replay r -q");
  CHECK(refused.status == 1);
  CHECK(has(refused.text, "does not understand"));
}

TEST_CASE("diff of two runs that differ by one fault names that fault's first effect") {
  workplace here;
  REQUIRE(here.shoal("run s.yaml -q --out a --set record.events=all").status == 0);
  REQUIRE(here.shoal("run s.yaml -q --out b --set record.events=all" + one_fault).status == 0);
  const auto out = here.shoal("diff a b");
  CHECK(out.status == 3);
  INFO(out.text);
  CHECK(has(out.text, "was killed in B"));
  CHECK(has(out.text, "a fault that only B has: {kill: process"));
  const auto back = here.shoal("diff b a --json");
  CHECK(back.status == 3);
  CHECK(has(back.text, "was killed in A"));
  // The same with what is recorded by default.
  REQUIRE(here.shoal("run s.yaml -q --out c").status == 0);
  REQUIRE(here.shoal("run s.yaml -q --out d" + one_fault).status == 0);
  const auto coarse = here.shoal("diff c d");
  CHECK(coarse.status == 3);
  CHECK(has(coarse.text, "was killed in B"));
  CHECK(has(coarse.text, "--set record.events=all"));
  CHECK(here.shoal("diff a none").status == 1);
}

TEST_CASE("a run with --check-determinism runs twice and finds no difference") {
  workplace here;
  const auto out = here.shoal("run s.yaml -q --until 40s --check-determinism");
  CHECK_MESSAGE(out.status == 0, out.text);
  CHECK(has(out.text, "the same history"));
  CHECK(std::distance(std::filesystem::directory_iterator(here.path), {}) == 1); // s.yaml
  const auto emulate = here.shoal("run s.yaml -q --until 1s --check-determinism --world emulate");
  CHECK(emulate.status == 1);
  CHECK(has(emulate.text, "wall clock"));
}

TEST_CASE("generate refuses what is no model, with the reason") {
  workplace here;
  const auto none = here.shoal("generate none");
  CHECK(none.status == 1);
#if SHOAL_WITH_LEARN
  CHECK(has(none.text, "does not exist"));
  const auto other = here.shoal("generate s.yaml");
  CHECK(other.status == 1);
  CHECK(has(other.text, "is not a Shoal checkpoint"));
  REQUIRE(here.shoal("run s.yaml -q --out r --until 2s").status == 0);
  const auto timing = here.shoal("generate r");
  CHECK(timing.status == 1);
  CHECK(has(timing.text, "workload.kind timing"));
  CHECK(here.shoal("generate r --temperature nan").status != 0);
#else
  CHECK(has(none.text, "without libtorch"));
#endif
}

#if SHOAL_WITH_LEARN
TEST_CASE("generate continues a prompt, the same for the same seed") {
  workplace here;
  const auto trained =
      here.shoal("run s.yaml -q --out r --no-baseline --until 50s --set workload.kind=transformer "
                 "--set workload.dim=16 --set workload.context=16 "
                 "--set workload.layers=1 --set training.target_batch=16 --set "
                 "training.micro_batch=4 --set training.epochs=2");
  REQUIRE_MESSAGE(trained.status == 0, trained.text);
  const auto text = here.shoal("generate r --prompt 'The ' --tokens 20 --seed 7");
  CHECK(text.status == 0);
  CHECK(text.text.starts_with("The "));
  CHECK(text.text.size() == 4 + 20 + 1);
  CHECK(here.shoal("generate r/final.ckpt --prompt 'The ' --tokens 20 --seed 7").text == text.text);
  CHECK(here.shoal("generate r --prompt 'The ' --tokens 20 --seed 8").text != text.text);
  CHECK(here.shoal("generate r --prompt '' --tokens 5").status == 0);
  CHECK(here.shoal("generate r --top-p 0").status == 1);
  CHECK(here.shoal("generate r --temperature -1").status == 1);
}
#endif

TEST_CASE("compare says within or beyond by its exit status, and refuses what it cannot compare") {
  workplace here;
  REQUIRE(here.shoal("run s.yaml -q --out a").status == 0);
  REQUIRE(here.shoal("run s.yaml -q --out b --set record.events=all").status == 0);
  REQUIRE(here.shoal("run s.yaml -q --out slow --set peers.home.up=1Mbit").status == 0);
  const auto same = here.shoal("compare a b --tolerance 0 --tolerance loss=off");
  CHECK_MESSAGE(same.status == 0, same.text);
  CHECK(has(same.text, "within what is allowed: round, rate, bytes"));
  const auto other = here.shoal("compare a slow");
  CHECK(other.status == 1);
  CHECK(has(other.text, "peers.home.up is 10Mbit and 1Mbit"));
  const auto forced = here.shoal("compare a slow --force --json");
  CHECK(forced.status == 3);
  CHECK(has(forced.text, "\"within\": false"));
  CHECK(here.shoal("compare a none").status == 1);
  CHECK(here.shoal("compare a").status == 2);
  CHECK(here.shoal("compare a b --tolerance lots").status == 2);
  CHECK(has(here.shoal("compare --help").text, "shoal diff"));
}
