// The first things that a newcomer types.
#include "tests/support/program.hpp"

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

using namespace shoal;

TEST_CASE("a command line that ends too early is answered with what may follow") {
  scratch_folder here;
  const auto alone = run_program(here.path, "");
  CHECK(alone.status == 2);
  CHECK(alone.text.starts_with("Shoal trains one model on many computers"));
  CHECK(alone.has("shoal run scenarios/quickstart.yaml   try this first"));
  const auto version = run_program(here.path, "version");
  CHECK(version.status == 0);
  CHECK(version.text == run_program(here.path, "--version").text);
  for (const char* command : {"keys", "bench", "trace", "images", "tokenizer", "model"}) {
    const auto told = run_program(here.path, command);
    CHECK(told.status == 2);
    CHECK(told.has("One of these words follows:\n"));
    CHECK_MESSAGE(told.has(std::string("For example: shoal ") + command), told.text);
  }
  CHECK(run_program(here.path, "keys").has("\n  init "));
}

TEST_CASE("bench averaging reads its values as scenarios do and refuses those without meaning") {
  scratch_folder here;
  const auto said = [&](const std::string& options) {
    const auto told = run_program(here.path, "bench averaging " + options);
    CHECK(told.status == 2);
    return told.text;
  };
  const auto more = "\nRun 'shoal help bench averaging' for more information.\n";
  CHECK(said("--peers -4") == std::string("--peers: '-4' is no number from 2 to 4194304") + more);
  CHECK(said("--peers x") == std::string("--peers: 'x' is no number from 2 to 4194304") + more);
  CHECK(said("--peers 16 --grid 3x3") ==
        "error: --grid: 16 peers do not fit in the 9 cells of 3x3\n");
  CHECK(said("--delay 50") == "error: --delay: '50' has no unit: write 50ms or 50s\n");
  CHECK(said("--failure 100%") == "error: --failure: has to be at most 99.9%\n");
  CHECK(said("--rate 0") == "error: --rate: has to be more than 0\n");
  const auto fine = run_program(here.path, "bench averaging --peers 4 --failure 5% --delay 50ms "
                                           "--rate 20Mbit --rounds 2 --restarts 1");
  CHECK_MESSAGE(fine.status == 0, fine.text);
}

TEST_CASE("a command without what it needs shows its form") {
  scratch_folder here;
  const auto said = [&](const char* command) {
    const auto told = run_program(here.path, command);
    CHECK(told.status == 2);
    return told.text.substr(0, told.text.find('\n'));
  };
  CHECK(said("run") == "scenario is required: shoal run SCENARIO [OPTION]...");
  CHECK(said("diff a") == "B is required: shoal diff A B [OPTION]...");
  CHECK(said("status") == "--join is required: shoal status --join HOST:PORT [OPTION]...");
  CHECK(said("keys show").starts_with("PATH is required: shoal keys show PATH"));
  CHECK(said("chaos --only x") == "--only: 'x' is no number");
  CHECK(said("schema x") == "The following argument was not expected: x");
}

TEST_CASE("explain without a question lists the rounds that are worth a look") {
  scratch_folder here;
  std::ofstream(here.path / "s.yaml")
      << "stop_time: 60s\n"
         "workload: {kind: timing, parameters: 100000}\n"
         "devices: {laptop: {samples_per_second: 10}}\n"
         "peers: {home: {count: 3, up: 10Mbit, down: 50Mbit, device: laptop}}\n"
         "training: {target_batch: 16, micro_batch: 4, epochs: 7}\n";
  REQUIRE(run_program(here.path, "run s.yaml -q --out r").status == 0);
  const auto told = run_program(here.path, "explain r");
  REQUIRE_MESSAGE(told.status == 0, told.text);
  CHECK(told.text.starts_with("5 of 7 rounds are worth a look\n"));
  CHECK(told.has("slowest"));
  // Each command that the list names works.
  const auto at = told.text.find("explain r --round ");
  REQUIRE(at != std::string::npos);
  CHECK(run_program(here.path, told.text.substr(at, told.text.find('\n', at) - at)).status == 0);
  CHECK(run_program(here.path, "explain r --json").text.starts_with("[\n"));
  CHECK(run_program(here.path, "explain none").text == "error: no such directory: 'none'\n");
}

TEST_CASE("a place or a port that cannot be had is refused before the run begins") {
  scratch_folder here;
  std::ofstream(here.path / "s.yaml")
      << "stop_time: 60s\n"
         "workload: {kind: timing, parameters: 1000}\n"
         "peers: {home: {count: 3, up: 10Mbit, down: 50Mbit, device: t4}}\n"
         "training: {target_batch: 16, micro_batch: 4, epochs: 2}\n";
  const auto said = [&](const std::string& options) {
    const auto told = run_program(here.path, "run s.yaml -q " + options);
    CHECK_MESSAGE(told.status == 1, told.text);
    return told.text;
  };
  CHECK(said("--out s.yaml/r") == "error: cannot write to 's.yaml/r': Not a directory\n");
  CHECK(said("--out /proc/none/r") ==
        "error: cannot write to '/proc/none/r': No such file or directory\n");
  CHECK(said("--metrics 8080") ==
        "error: --metrics: '8080' has no ':' before the port: write :8080 for this machine alone, "
        "or 0.0.0.0:8080 for others, too\n");
  CHECK(said("--metrics lab:9464").find("'lab' in 'lab:9464' is no address in digits") !=
        std::string::npos);
  CHECK(said("--set peers.home.device=gpu").find("without an entry of 'devices': laptop") !=
        std::string::npos);
  CHECK(said("--set peers.home.churn.trace=none.csv")
            .find("no such file: 'none.csv' in the working directory, where the scenario is") !=
        std::string::npos);
  // A port that another program has.
  const int taken = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  REQUIRE(::bind(taken, reinterpret_cast<sockaddr*>(&address), size) == 0);
  REQUIRE(::listen(taken, 1) == 0);
  REQUIRE(::getsockname(taken, reinterpret_cast<sockaddr*>(&address), &size) == 0);
  const auto port = ":" + std::to_string(ntohs(address.sin_port));
  CHECK(said("--metrics " + port).find("Address already in use") != std::string::npos);
  CHECK(said("--dashboard " + port).find("error: --dashboard: ") != std::string::npos);
  ::close(taken);
  CHECK(run_program(here.path, "run s.yaml -q --out new/r").status == 0);
}
