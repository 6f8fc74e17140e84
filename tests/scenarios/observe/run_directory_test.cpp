#include "scenarios/observe/run_directory.hpp"
#include "tests/scenarios/observe/helpers.hpp"

#include <doctest/doctest.h>
#include <sys/resource.h>

#include <atomic>
#include <csignal>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

using namespace shoal;
using namespace shoal::scenarios;
using shoal::scenarios::test::scratch;
namespace fs = std::filesystem;

namespace {

/// Files may not grow beyond `bytes` while this lives: as a full disk, without root.
struct small_disk {
  rlimit before{};
  void (*handler)(int);
  explicit small_disk(rlim_t bytes) : handler(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before);
    rlimit now = before;
    now.rlim_cur = bytes;
    setrlimit(RLIMIT_FSIZE, &now);
  }
  ~small_disk() {
    setrlimit(RLIMIT_FSIZE, &before);
    std::signal(SIGXFSZ, handler);
  }
};

std::size_t files_in(const fs::path& path) {
  return static_cast<std::size_t>(
      std::distance(fs::directory_iterator(path), fs::directory_iterator{}));
}

} // namespace

TEST_CASE("a run directory is made with its parents and its files appear whole") {
  scratch temp;
  auto made = run_directory::create(temp.path / "a" / "b", false);
  REQUIRE(made.ok());
  CHECK(files_in(made->path()) == 0);
  REQUIRE(made->write("run.yaml", "seed: 1\n").ok());
  CHECK(read_file(made->file("run.yaml")).value() == "seed: 1\n");
  {
    auto open = made->open("metrics.csv");
    REQUIRE(open.ok());
    (*open)->write("half");
  }
  CHECK(files_in(made->path()) == 1); // an uncommitted directory is gone
}

TEST_CASE("a directory that exists is refused, and with force only a run's files are replaced") {
  scratch temp;
  std::ofstream(temp.path / "summary.json") << "old";
  std::ofstream(temp.path / "notes.txt") << "mine";
  const auto refused = run_directory::create(temp.path, false);
  REQUIRE(!refused.ok());
  CHECK(refused.error() == "'" + temp.path.string() + "' exists; --force replaces the run in it");
  CHECK(!run_directory::check_free(temp.path, false).ok());
  CHECK(run_directory::check_free(temp.path, true).ok());
  CHECK(run_directory::check_free(temp.path / "new" / "deep", false).ok());
  CHECK(!fs::exists(temp.path / "new")); // nothing is left behind

  REQUIRE(run_directory::create(temp.path, true).ok());
  CHECK(!fs::exists(temp.path / "summary.json"));
  CHECK(fs::exists(temp.path / "notes.txt"));
}

TEST_CASE("a path that cannot be a directory is an error that names it") {
  scratch temp;
  const fs::path file = temp.path / "file";
  std::ofstream(file) << "x";
  const auto is_file = run_directory::create(file, true);
  REQUIRE(!is_file.ok());
  CHECK(is_file.error() == "'" + file.string() + "' exists and is not a directory");
  const auto below = run_directory::create(file / "below", false);
  REQUIRE(!below.ok());
  CHECK(below.error().find((file / "below").string()) != std::string::npos);
  const auto unwritable = run_directory::create("/proc/shoal-run", false);
  REQUIRE(!unwritable.ok());
  CHECK(unwritable.error().find("/proc/shoal-run") != std::string::npos);
}

TEST_CASE("processes that begin runs beside each other make their common folder") {
  scratch temp;
  constexpr int processes = 4;
  std::atomic<int> failures{0}, waiting{0};
  std::vector<std::thread> all;
  for (int i = 0; i < processes; ++i)
    all.emplace_back([&, i] {
      for (int n = 0; n < 1000; ++n) {
        ++waiting;
        while (waiting < processes * (n + 1)) std::this_thread::yield();
        // A check takes the common folder away again if it has made that.
        const auto path = temp.path / std::to_string(n) / std::to_string(i);
        if (!run_directory::check_free(path, false)) ++failures;
      }
    });
  for (auto& each : all) each.join();
  CHECK(failures == 0);
}

TEST_CASE("a full disk is an error that names the file, and nothing half-written stays") {
  scratch temp;
  auto made = run_directory::create(temp.path / "run", false);
  REQUIRE(made.ok());
  small_disk limit(64 * 1024);
  const auto written = made->write("final.ckpt", std::string(1 << 20, 'x'));
  REQUIRE(!written.ok());
  CHECK(written.error().starts_with("cannot write '" + made->file("final.ckpt").string() + "': "));
  CHECK(files_in(made->path()) == 0);
}
