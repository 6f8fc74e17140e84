#include "scenarios/compare/find_model.hpp"
#include "tests/scenarios/compare/helpers.hpp"

using namespace shoal::scenarios;
using namespace shoal::scenarios::test;

TEST_CASE("the model of a run is its final.ckpt, and a file is itself") {
  scratch temp;
  write(temp.path / "final.ckpt", "?");
  CHECK(*model_file(temp.path) == temp.path / "final.ckpt");
  CHECK(*model_file(temp.path / "final.ckpt") == temp.path / "final.ckpt");
}

TEST_CASE("where there is no model, the reason is said") {
  scratch temp;
  const auto error = [&] { return model_file(temp.path).error(); };
  CHECK(model_file(temp.path / "none").error().find("does not exist") != std::string::npos);
  CHECK(error().find("no directory of a run") != std::string::npos);
  write(temp.path / "run.yaml", run_yaml());
  CHECK(error().find("workload.kind timing") != std::string::npos);
  write(temp.path / "run.yaml", "workload: {kind: transformer}\n");
  CHECK(error().find("did not end") != std::string::npos);
}

TEST_CASE("a run that goes on has checkpoints in the order of their epochs, and no model yet") {
  scratch temp;
  const auto folder = temp.path / "checkpoints";
  std::filesystem::create_directory(folder);
  for (const auto* name : {"epoch-9.ckpt", "epoch-10.ckpt", "epoch-10.png", "epoch-x.ckpt"})
    write(folder / name, "?");
  CHECK(checkpoints_of(temp.path) ==
        std::vector{folder / "epoch-9.ckpt", folder / "epoch-10.ckpt"});
  CHECK(checkpoints_of(temp.path / "none").empty());
  CHECK(model_file(temp.path).error().find("has not ended. Its last checkpoint is '" +
                                           (folder / "epoch-10.ckpt").string()) !=
        std::string::npos);
}
