// `shoal keys` as a moderator and a volunteer meet it.
#include "tests/support/program.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <string>

namespace {

namespace fs = std::filesystem;

std::string slurp(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

struct desk : shoal::scratch_folder {
  /// With SERIAL, KEY and TIME for what differs from run to run.
  shoal::program_outcome keys(const std::string& arguments) const {
    auto out = shoal::run_program(path, "keys " + arguments);
    out.text = std::regex_replace(out.text, std::regex("[0-9a-f]{64}"), "KEY");
    out.text = std::regex_replace(out.text, std::regex("[0-9a-f]{32}"), "SERIAL");
    out.text =
        std::regex_replace(out.text, std::regex("[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}Z"), "TIME");
    return out;
  }
  /// The output of a command that succeeds.
  std::string done(const std::string& arguments) const {
    const auto all = keys(arguments);
    CHECK_MESSAGE(all.status == 0, all.text);
    return all.text;
  }
  /// The error of a command with bad input.
  std::string refused(const std::string& arguments, int status = 1) const {
    const auto all = keys(arguments);
    CHECK_MESSAGE(all.status == status, all.text);
    return all.text;
  }
  unsigned mode(const char* file) const {
    struct stat facts {};
    REQUIRE(::stat((path / file).c_str(), &facts) == 0);
    return facts.st_mode & 0777;
  }
  std::string files(const char* folder) const {
    std::string out;
    for (const char* name : {"admitted.csv", "lab-3.csr", "moderator.key", "node.crt", "node.key",
                             "revoked.crl", "swarm.crt"})
      if (fs::exists(path / folder / name)) out += fmt::format("{} ", name);
    CHECK(std::distance(fs::directory_iterator(path / folder), fs::directory_iterator()) ==
          std::count(out.begin(), out.end(), ' '));
    return out;
  }
};

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

} // namespace

TEST_CASE("keys: a volunteer is admitted with a key that never leaves its machine") {
  const desk here;
  CHECK(here.done("init reef --swarm coral") ==
        "reef: the moderator of swarm 'coral', until TIME\n"
        "  moderator.key  its holder may admit any node: keep it off the nodes, and a copy in a "
        "safe place\n"
        "next: 'shoal keys admit NAME --moderator reef -o DIR', or with the request that a "
        "volunteer sends\n");
  CHECK(here.files("reef") == "admitted.csv moderator.key revoked.crl swarm.crt ");
  CHECK((here.mode("reef") == 0700 && here.mode("reef/moderator.key") == 0600));
  CHECK(here.done("request lab-3 -o lab3") ==
        "lab3: the key of 'lab-3', which stays on this machine, and its request\n"
        "next: send lab3/lab-3.csr to the moderator, and put the files that come back into lab3\n");
  CHECK(here.files("lab3") == "lab-3.csr node.key ");
  CHECK(here.mode("lab3/node.key") == 0600);
  CHECK(has(here.refused("show lab3"), "lab3: error: no node can be started with it: "
                                       "'lab3/node.crt' is missing: the moderator makes it with"));
  CHECK(here.done("admit lab3/lab-3.csr --moderator reef -o answer") ==
        "answer: 'lab-3' is admitted to 'coral' until TIME, serial SERIAL\n"
        "next: send the files to 'lab-3', who puts them beside its key; none of them is secret\n");
  CHECK(here.files("answer") == "node.crt revoked.crl swarm.crt ");
  for (const char* file : {"node.crt", "revoked.crl", "swarm.crt"})
    fs::copy(here.path / "answer" / file, here.path / "lab3" / file);
  CHECK(here.done("show lab3") == "lab3/lab-3.csr\n"
                                  "  request     of 'lab-3', to be admitted\n"
                                  "  public key  KEY\n"
                                  "lab3/node.crt\n"
                                  "  certificate node 'lab-3', by the moderator of 'coral'\n"
                                  "  serial      SERIAL\n"
                                  "  public key  KEY\n"
                                  "  valid       from TIME until TIME\n"
                                  "  now         valid for another 29 days\n"
                                  "lab3/node.key\n"
                                  "  private key Ed25519, which only its owner may read\n"
                                  "  public key  KEY\n"
                                  "lab3/revoked.crl\n"
                                  "  revoked     list number 1 of the moderator of 'coral'\n"
                                  "  valid       from TIME until there is a higher number\n"
                                  "              nobody is revoked\n"
                                  "lab3/swarm.crt\n"
                                  "  certificate moderator of 'coral'\n"
                                  "  serial      SERIAL\n"
                                  "  public key  KEY\n"
                                  "  valid       from TIME until TIME\n"
                                  "  now         valid for another 364 days\n"
                                  "lab3: node 'lab-3' can be started with it\n");
}

TEST_CASE("keys: a name is admitted, admitted again, and revoked") {
  const desk here;
  here.done("init reef");
  CHECK(here.done("admit lab-3 --moderator reef -o one --valid 2h") ==
        "one: 'lab-3' is admitted to 'swarm' until TIME, serial SERIAL\n"
        "next: move the folder to the node, for it alone to read: it has the node's key\n");
  CHECK(here.files("one") == "node.crt node.key revoked.crl swarm.crt ");
  CHECK((here.mode("one") == 0700 && here.mode("one/node.key") == 0600));
  CHECK(has(here.done("show one/node.crt"), "  now         valid for another 119 minutes\n"));
  CHECK(here.done("admit lab-3 --moderator reef -o two --valid 400d") ==
        "two: 'lab-3' is admitted to 'swarm' until TIME, serial SERIAL\n"
        "note: not for 400d: the moderator's own certificate ends then\n"
        "note: 'lab-3' was admitted before; also valid:\n"
        "  SERIAL until TIME\n"
        "  'shoal keys revoke SERIAL' ends one before its time\n"
        "next: move the folder to the node, for it alone to read: it has the node's key\n");
  CHECK(here.done("admit lab-4 --moderator reef -o four") != "");

  const std::string csv = slurp(here.path / "reef/admitted.csv");
  const std::string serial = csv.substr(csv.find("lab-4,") + 6, 32);
  // As other programs write a serial.
  std::string capitals;
  for (std::size_t i = 0; i < serial.size(); ++i)
    capitals += fmt::format("{}{:c}", i > 0 && i % 2 == 0 ? ":" : "", std::toupper(serial[i]));
  CHECK(here.done("revoke " + capitals + " --moderator reef") ==
        "1 certificate of 'lab-4' is revoked\n"
        "reef/revoked.crl: revocation list number 2, with 1 certificate\n"
        "next: put it into the nodes' folders: a node that has an older list still lets 'lab-4' "
        "in\n");
  CHECK(here.done("revoke lab-4 --moderator reef") ==
        "1 certificate of 'lab-4' was revoked before; nothing changed\n");
  CHECK(here.done("revoke lab-3 --moderator reef") ==
        "2 certificates of 'lab-3' are revoked\n"
        "reef/revoked.crl: revocation list number 3, with 3 certificates\n"
        "next: put it into the nodes' folders: a node that has an older list still lets 'lab-3' "
        "in\n");
  CHECK(has(
      here.done("admit lab-3 --moderator reef -o three"),
      "note: 'lab-3' was admitted before; none of its earlier certificates is valid any more\n"));
  CHECK(here.done("revoke lab-3 --moderator reef")
            .starts_with("1 certificate of 'lab-3' is revoked; 2 were before\n"));
  CHECK(here.done("show reef/admitted.csv") == "reef/admitted.csv\n"
                                               "  lab-3  SERIAL  until TIME  revoked\n"
                                               "  lab-3  SERIAL  until TIME  revoked\n"
                                               "  lab-4  SERIAL  until TIME  revoked\n"
                                               "  lab-3  SERIAL  until TIME  revoked\n");
  // A folder with an old list does not know of the revocation; one with the new list does.
  CHECK(has(here.done("show four"), "four: node 'lab-4' can be started with it\n"));
  fs::copy_file(here.path / "reef/revoked.crl", here.path / "four/revoked.crl",
                fs::copy_options::overwrite_existing);
  const std::string four = here.refused("show four");
  CHECK(has(four, "  now         revoked at TIME\n"));
  CHECK(has(
      four,
      "four: error: no node can be started with it: "
      "'four/node.crt': the certificate of 'lab-4' is revoked; ask the moderator of 'swarm'\n"));
}

TEST_CASE("keys: on one machine the answer to a request goes to the key, and so does a renewal") {
  const desk here;
  here.done("init reef");
  here.done("request lab-3 -o lab3");
  const std::string key = slurp(here.path / "lab3/node.key");
  here.done("admit lab3/lab-3.csr --moderator reef -o lab3");
  const std::string first = slurp(here.path / "lab3/node.crt");
  CHECK(here.files("lab3") == "lab-3.csr node.crt node.key revoked.crl swarm.crt ");
  CHECK(has(here.done("admit lab3/lab-3.csr --moderator reef -o lab3/"),
            "was admitted before; also valid:"));
  CHECK(slurp(here.path / "lab3/node.crt") != first);
  CHECK(slurp(here.path / "lab3/node.key") == key);
  CHECK(has(here.done("show lab3"), "lab3: node 'lab-3' can be started with it\n"));
}

TEST_CASE("keys: bad input is answered with what to do, and leaves nothing behind") {
  const desk here;
  here.done("init reef");
  here.done("admit lab-3 --moderator reef -o lab3");
  const std::string csv = slurp(here.path / "reef/admitted.csv");
  const auto everything = [&] {
    return std::distance(fs::recursive_directory_iterator(here.path),
                         fs::recursive_directory_iterator());
  };
  const auto before = everything();

  CHECK(here.refused("init reef") ==
        "error: 'reef' exists and is not empty; name a folder that does not exist yet\n");
  CHECK(has(here.refused("init r --swarm 'a b'"),
            "error: 'a b' is not a valid name: use up to 63 letters, digits, '-', '.' and '_'"));
  CHECK(here.refused("init r --valid soon", 2).starts_with("error: --valid: "));
  CHECK(here.refused("init r --valid 0", 2) == "error: --valid: 0 is too short: at least 1s\n");
  CHECK(has(here.refused("init r --valid 100000d"), "is too long: it ends after the year 2260"));
  CHECK(has(here.refused("request ../lab -o r"), "error: '../lab' is not a valid name"));
  CHECK(here.refused("request lab-5 -o lab3") ==
        "error: 'lab3' exists and is not empty; name a folder that does not exist yet\n");
  CHECK(here.refused("admit lab-5 --moderator reef -o lab3") ==
        "error: 'lab3' exists and is not empty; name a folder that does not exist yet\n");
  CHECK(here.refused("admit LAB-3 --moderator reef -o r") ==
        "error: 'LAB-3' differs from 'lab-3', an admitted node, only in capitals: TLS takes them "
        "for the same\n");
  CHECK(here.refused("admit swarm --moderator reef -o r") ==
        "error: 'swarm' is the name of the swarm: a node needs another one\n");
  CHECK(here.refused("admit lab-5 --moderator lab3 -o r") ==
        "error: 'lab3' is not a moderator's folder: it has no moderator.key; 'shoal keys init DIR' "
        "makes one\n");
  CHECK(here.refused("admit lab-5.csr --moderator reef -o r") ==
        "error: cannot open 'lab-5.csr': No such file or directory\n");
  CHECK(
      here.refused("admit lab3/node.crt --moderator reef -o r") ==
      "error: 'lab3/node.crt': not a request: expected a CERTIFICATE REQUEST, not a CERTIFICATE\n");
  CHECK(
      here.refused("revoke lab-4 --moderator reef") ==
      "error: no node with the name or serial 'lab-4' was admitted here; did you mean 'lab-3'?\n");
  CHECK(
      here.refused("revoke somebody-else --moderator reef") ==
      "error: no node with the name or serial 'somebody-else' was admitted here; 'shoal keys show "
      "reef' lists the admitted nodes\n");
  ::chmod((here.path / "reef/moderator.key").c_str(), 0644);
  CHECK(here.refused("admit lab-5 --moderator reef -o r") ==
        "error: 'reef/moderator.key' is a secret, and its mode 0644 lets others in; "
        "'chmod 600 reef/moderator.key' makes it yours alone\n");
  CHECK(has(here.refused("show reef"), "reef/moderator.key: error: 'reef/moderator.key' is a "
                                       "secret, and its mode 0644 lets others in"));
  CHECK(here.refused("show lab3 elsewhere")
            .ends_with("elsewhere: error: cannot open 'elsewhere': No such file or directory\n"));
  CHECK(here.refused("admit", 2) != "");
  CHECK(has(here.refused("sho reef", 2), "unknown command 'sho'; did you mean 'show'?"));

  CHECK(slurp(here.path / "reef/admitted.csv") == csv);
  CHECK(everything() == before);
}

TEST_CASE("keys: no secret is ever shown") {
  const desk here;
  std::string all;
  for (const char* command :
       {"init reef", "request lab-3 -o lab3", "admit lab3/lab-3.csr --moderator reef -o lab3",
        "admit lab-4 --moderator reef -o lab4", "show reef lab3 lab4 lab3/node.key"})
    all += here.done(command);
  ::chmod((here.path / "lab4/node.key").c_str(), 0640);
  all += here.refused("show lab4 lab4/node.key");
  for (const char* file : {"reef/moderator.key", "lab3/node.key", "lab4/node.key"}) {
    const std::string text = slurp(here.path / file);
    // The last 43 characters of the second line are the key; those before are the same for all.
    const std::string secret = text.substr(text.find('\n') + 1 + 22, 42);
    for (std::size_t at = 0; at + 8 <= secret.size(); ++at)
      CHECK_FALSE(has(all, secret.substr(at, 8)));
  }
}
