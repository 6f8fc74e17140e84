#include "scenarios/schema/load.hpp"
#include "scenarios/schema/new_swarm.hpp"
#include "scenarios/workloads/workload.hpp"
#include "tests/support/scratch_folder.hpp"

#include <doctest/doctest.h>

#include <cstdlib>

using namespace shoal::scenarios;

namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

} // namespace

TEST_CASE("the scenario of every new swarm is right, without a warning") {
  for (const kind_definition* kind : workload_kinds())
    for (const std::uint64_t friends : {1, 2, 1000}) {
      new_swarm what;
      what.name = "reef";
      what.workload = workloads().find(kind->name);
      what.friends = friends;
      what.steps = 77;
      const std::string text = to_yaml(what);
      INFO(text);
      const load_result loaded = load_text(text, "reef.yaml");
      std::string said;
      for (const auto* list : {&loaded.errors, &loaded.warnings})
        for (const diagnostic& one : *list) said += render(one);
      CHECK(said == "");
      REQUIRE(loaded.value);
      CHECK(loaded.value->workload.kind == what.workload);
      CHECK(loaded.value->training.epochs == 77);
      CHECK(loaded.value->peers[0].count == friends + 1);
    }
}

TEST_CASE("the start of a new swarm is a script that a shell can read, whatever the path") {
  const shoal::scratch_folder here;
  new_swarm what;
  what.name = "reef";
  for (const char* host : {"127.0.0.1", "::1", "reef.example.org"}) {
    what.host = host;
    here.write("start", start_script(what, "/opt/a friend's/shoal"));
    CHECK(std::system(("bash -n '" + (here.path / "start").string() + "'").c_str()) == 0);
  }
}

TEST_CASE(
    "a new swarm listens on all sides where friends dial a name, and else on loopback alone") {
  new_swarm what;
  what.name = "reef";
  const std::string here = start_script(what, "shoal");
  CHECK(has(here, "host shard-0 --listen 127.0.0.1:7000"));
  CHECK(has(here, "host home-0 --listen 127.0.0.1:7001"));
  CHECK(has(here, "--join 127.0.0.1:7000 --join 127.0.0.1:7001"));
  CHECK(has(invitation(what), "only its users can take part"));
  what.host = "reef.example.org";
  what.port = 9000;
  const std::string far = start_script(what, "shoal");
  CHECK(has(far, "--listen 0.0.0.0:9000 --advertise reef.example.org:9000"));
  CHECK(has(far, "--listen 0.0.0.0:9001 --advertise reef.example.org:9001"));
  CHECK(has(invitation(what), "--join reef.example.org:9000 --join reef.example.org:9001"));
  CHECK_FALSE(has(invitation(what), "only its users"));
  what.host = "2001:db8::1";
  CHECK(has(invitation(what), "--join [2001:db8::1]:9000"));
}
