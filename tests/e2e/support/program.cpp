#include "tests/e2e/support/program.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <thread>

namespace shoal::e2e {

namespace {

void set_up_child(const program_options& options, int out, int err) {
  for (const auto& entry : options.environment) {
    auto equals = entry.find('=');
    setenv(entry.substr(0, equals).c_str(), entry.substr(equals + 1).c_str(), 1);
  }
  if (!options.stdout_to.empty()) out = open(options.stdout_to.c_str(), O_WRONLY | O_CREAT, 0666);
  dup2(out, STDOUT_FILENO);
  dup2(err, STDERR_FILENO);
  if (options.file_size_limit >= 0) {
    auto limit = static_cast<rlim_t>(options.file_size_limit);
    rlimit both{limit, limit};
    setrlimit(RLIMIT_FSIZE, &both);
  }
}

} // namespace

program_result run_program(const std::vector<std::string>& arguments,
                           const program_options& options) {
  int out[2], err[2];
  if (pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0) throw std::runtime_error("pipe");
  std::vector<std::string> all{SHOAL_PROGRAM};
  all.insert(all.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (auto& argument : all) argv.push_back(argument.data());
  argv.push_back(nullptr);
  auto child = fork();
  if (child < 0) throw std::runtime_error("fork");
  if (child == 0) {
    set_up_child(options, out[1], err[1]);
    execv(argv[0], argv.data());
    _exit(127);
  }
  close(out[1]);
  close(err[1]);
  program_result result;
  pollfd streams[2] = {{out[0], POLLIN, 0}, {err[0], POLLIN, 0}};
  std::string* into[2] = {&result.out, &result.err};
  int open_streams = 2;
  bool signalled = options.signal == 0;
  while (open_streams > 0) {
    poll(streams, 2, 20);
    for (int i = 0; i < 2; ++i) {
      if (streams[i].fd < 0 || streams[i].revents == 0) continue;
      char buffer[4096];
      auto count = read(streams[i].fd, buffer, sizeof buffer);
      if (count > 0) {
        into[i]->append(buffer, static_cast<std::size_t>(count));
      } else {
        close(streams[i].fd);
        streams[i].fd = -1;
        --open_streams;
      }
    }
    if (!signalled && std::filesystem::exists(options.signal_when)) {
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      kill(child, options.signal);
      signalled = true;
    }
  }
  int status = 0;
  waitpid(child, &status, 0);
  result.exit = WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
  return result;
}

scratch_folder::scratch_folder() {
  auto pattern = (std::filesystem::temp_directory_path() / "shoal-e2e-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp");
  path_ = pattern;
}

scratch_folder::~scratch_folder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string slurp(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

void spill(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

} // namespace shoal::e2e
