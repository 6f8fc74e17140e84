#include "tests/cluster/support/node_process.hpp"

#include "tests/e2e/support/program.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace shoal::cluster {

namespace {

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in out{};
  out.sin_family = AF_INET;
  out.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  out.sin_port = htons(port);
  return out;
}

} // namespace

bool wait_until(const std::function<bool()>& true_now, std::chrono::milliseconds limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!true_now()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(20ms);
  }
  return true;
}

std::uint16_t free_port() {
  // Outgoing connections get higher ports. The first port depends on the process, so that two
  // processes do not choose the same.
  static std::uint16_t next = static_cast<std::uint16_t>(20000 + getpid() * 37 % 10000);
  for (;;) {
    if (++next >= 32000) next = 20000;
    const int made = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const auto at = loopback(next);
    const bool free = bind(made, reinterpret_cast<const sockaddr*>(&at), sizeof(at)) == 0;
    close(made);
    if (free) return next;
  }
}

node_process::node_process(const std::filesystem::path& folder, const std::string& name,
                           const std::vector<std::string>& arguments,
                           const std::vector<std::string>& environment)
    : out_(folder / (name + ".out")), err_(folder / (name + ".err")) {
  std::vector<std::string> all{SHOAL_PROGRAM};
  all.insert(all.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (auto& argument : all) argv.push_back(argument.data());
  argv.push_back(nullptr);
  std::vector<std::string> added = environment;
  std::vector<char*> env;
  // The first entry of a name counts.
  for (auto& entry : added) env.push_back(entry.data());
  for (auto** entry = environ; *entry != nullptr; ++entry) env.push_back(*entry);
  env.push_back(nullptr);
  // The files are opened before the fork, since a child of a process with threads may do next to
  // nothing before exec.
  const int out = open(out_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  const int err = open(err_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  pid_ = fork();
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(out, STDOUT_FILENO);
    dup2(err, STDERR_FILENO);
    execve(argv[0], argv.data(), env.data());
    _exit(127);
  }
  close(out);
  close(err);
  if (pid_ < 0) throw std::runtime_error("fork");
}

node_process::~node_process() {
  if (!running()) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

std::string node_process::out() const {
  return e2e::slurp(out_);
}
std::string node_process::err() const {
  return e2e::slurp(err_);
}

bool node_process::says(const std::string& text, std::chrono::milliseconds limit) {
  const auto said = [&] { return err().find(text) != std::string::npos; };
  return wait_until([&] { return said() || !running(); }, limit) && said();
}

bool node_process::running() {
  if (exit_) return false;
  int status = 0;
  if (waitpid(pid_, &status, WNOHANG) != pid_) return true;
  exit_ = WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
  return false;
}

std::optional<int> node_process::wait(std::chrono::milliseconds limit) {
  wait_until([&] { return !running(); }, limit);
  return exit_;
}

void node_process::signal(int number) const {
  kill(pid_, number);
}

namespace {

/// A number of a process's status file, which counts in KiB.
std::uint64_t status_bytes(pid_t process, std::string_view key) {
  std::ifstream in("/proc/" + std::to_string(process) + "/status");
  std::string word;
  std::uint64_t kibibytes = 0;
  while (in >> word)
    if (word == key) in >> kibibytes;
  return kibibytes * 1024;
}

} // namespace

std::uint64_t node_process::peak_memory_bytes() const {
  return status_bytes(pid_, "VmHWM:");
}

std::uint64_t node_process::resident_memory_bytes() const {
  return status_bytes(pid_, "VmRSS:");
}

std::size_t node_process::open_sockets() const {
  std::size_t out = 0;
  const auto folder = "/proc/" + std::to_string(pid_) + "/fd";
  for (const auto& each : std::filesystem::directory_iterator(folder)) {
    std::error_code gone;
    const auto to = std::filesystem::read_symlink(each.path(), gone).string();
    out += to.starts_with("socket:") ? 1 : 0;
  }
  return out;
}

std::string http_get(std::uint16_t port, const std::string& path) {
  const int made = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const auto at = loopback(port);
  std::string all;
  if (connect(made, reinterpret_cast<const sockaddr*>(&at), sizeof(at)) == 0) {
    const auto request =
        "GET " + path + " HTTP/1.0\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n";
    if (write(made, request.data(), request.size()) == static_cast<ssize_t>(request.size())) {
      std::array<char, 4096> buffer;
      for (ssize_t count = 0; (count = read(made, buffer.data(), buffer.size())) > 0;)
        all.append(buffer.data(), static_cast<std::size_t>(count));
    }
  }
  close(made);
  const auto head = all.find("\r\n\r\n");
  return head == std::string::npos ? std::string{} : all.substr(head + 4);
}

series read_series(const std::string& page) {
  series out;
  std::istringstream in(page);
  for (std::string line; std::getline(in, line);) {
    const auto space = line.rfind(' ');
    if (line.empty() || line.front() == '#' || space == std::string::npos) continue;
    out[line.substr(0, space)] = std::strtod(line.c_str() + space, nullptr);
  }
  return out;
}

} // namespace shoal::cluster
