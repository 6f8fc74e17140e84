#include "tests/scenarios/schema/files.hpp"

#include <doctest/doctest.h>

using namespace shoal;
using namespace shoal::scenarios;
using namespace shoal::scenarios::test;

TEST_CASE("globs match whole names") {
  CHECK(glob_match("home-*", "home-12"));
  CHECK(glob_match("*", ""));
  CHECK(glob_match("home-1", "home-1"));
  CHECK_FALSE(glob_match("home-1", "home-12"));
  CHECK_FALSE(glob_match("home-?", "home-12"));
  CHECK(glob_match("home-?", "home-1"));
  CHECK(glob_match("home-[0-3]", "home-2"));
  CHECK_FALSE(glob_match("home-[0-3]", "home-4"));
  for (const char* name : {"home-1", "home-2", "home-3"}) CHECK(glob_match("home-[123]", name));
  CHECK_FALSE(glob_match("home-[123]", "home-4"));
  CHECK(glob_match("home-[1230-9]", "home-1"));
  CHECK(glob_match("home-[!0-3]", "home-4"));
  CHECK(glob_match("*-*-7", "a-b-7"));
  CHECK(glob_match("*a*b", "xxaxxaxb"));
  CHECK_FALSE(glob_match("*a*b", "xxaxxaxbc"));
  CHECK_FALSE(glob_match("", "a"));
  CHECK(glob_match("[", "["));
  CHECK_FALSE(glob_match("[]", "a"));
}

TEST_CASE("a glob of many stars takes no exponential time") {
  CHECK_FALSE(glob_match("*a*a*a*a*a*a*a*a*a*a*a*a*b", std::string(200, 'a')));
}

TEST_CASE("groups expand to hosts in the file's order, each with its own start") {
  const load_result result =
      load_text("stop_time: 1h\n"
                "network: {regions: [eu, us]}\n"
                "workload: {kind: timing}\n"
                "devices: {laptop: {samples_per_second: 10}}\n"
                "peers:\n"
                "  zebra: {count: 2, up: 1Mbit, down: 2Mbit, device: laptop, start: 3s, "
                "start_spacing: 500ms, boot_time: 400ms}\n"
                "  ant: {region: us, up: 3Mbit, down: 4Mbit, device: laptop, absent: true}\n"
                "faults: [{join: host, select: ant-*, at: 5s}]\n",
                "s.yaml");
  REQUIRE_MESSAGE(result.value, rendered(result));
  const auto hosts = expand_hosts(*result.value);
  REQUIRE(hosts.size() == 3);
  CHECK(hosts[0].name == "zebra-0");
  CHECK(hosts[0].region == "eu");
  CHECK(hosts[0].start == std::chrono::seconds(3));
  CHECK(hosts[1].name == "zebra-1");
  CHECK(hosts[1].start == std::chrono::milliseconds(3500));
  CHECK(hosts[1].boot_time == std::chrono::milliseconds(400));
  CHECK(hosts[2].boot_time == duration{});
  CHECK(hosts[1].up == data_rate{1e6});
  CHECK(hosts[2].name == "ant-0");
  CHECK(hosts[2].region == "us");
  CHECK(hosts[2].down == data_rate{4e6});
  CHECK(hosts[2].absent);
  CHECK(result.warnings.empty());
}

TEST_CASE(
    "patterns that have no name in common are told apart by how they begin, and no others are") {
  for (const auto& [a, b] : {std::pair{"home-1*", "home-2*"},
                             {"home-*", "office-*"},
                             {"home-7", "home-8"},
                             {"home-7", "home-[89]"},
                             {"home-1", "home"},
                             {"", "a*"}}) {
    CAPTURE(a);
    CHECK_FALSE(may_overlap(a, b));
    CHECK_FALSE(may_overlap(b, a));
  }
  for (const auto& [a, b] : {std::pair{"home-1*", "home-12*"},
                             {"*", "office-*"},
                             {"home-7", "home-?"},
                             {"h[a", "h*"},
                             {"h[a]*", "hz*"},
                             {"home-7", "home-7"},
                             {"*-1", "*-2"}}) {
    CAPTURE(a);
    CHECK(may_overlap(a, b));
    CHECK(may_overlap(b, a));
  }
}

TEST_CASE("data files are counted once, whatever links point to them") {
  namespace fs = std::filesystem;
  const fs::path folder =
      fs::temp_directory_path() / ("shoal-hosts-" + std::to_string(std::rand()));
  fs::create_directories(folder / "sub");
  write_file(folder / "a.txt", "a");
  write_file(folder / "b.txt", "b");
  fs::create_symlink("a.txt", folder / "c.txt");
  fs::create_symlink("nowhere", folder / "d.txt");
  scenario s;
  s.data.files = {(folder / "*").string(), (folder / "a.txt").string()};
  const auto files = data_files(s);
  REQUIRE(files.size() == 2);
  CHECK(fs::path(files[0]).filename() == "a.txt");
  CHECK(fs::path(files[1]).filename() == "b.txt");
  fs::remove_all(folder);
}
