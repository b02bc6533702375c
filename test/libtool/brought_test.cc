// A tool whose program some LFSs do not have: its controller brings it to them.
#include <catch2/catch.hpp>

#include <fmt/format.h>

#include "libtool/tool_fixtures.h"
#include "pif/component/memory_storage.h"
#include "sim/program_file.h"

namespace pif::sim {
namespace {

const std::string kBuild = "0123456789abcdefghij";

// A tool that gives its rank back.
struct Brought {
  explicit Brought(std::set<std::string> missing_at)
      : fixture(1, 4, [this](tool::Worker& worker) {
          worker.set_result(fmt::format("{}", worker.rank()));
          ++workers;
          return Status();
        }) {
    fixture.cluster.programs().missing_at = std::move(missing_at);
    set_image(program_file(kBuild, 2'500'000));
  }

  void set_image(const std::vector<std::byte>& bytes) {
    auto storage = component::make_memory_storage(disk);
    auto file = must(storage->open("/tool", component::OpenMode::kCreate));
    must(file->resize(0));
    must(file->write(0, bytes));
    image = std::move(file);
  }
  Result<std::vector<std::string>> run(Client& client) {
    tool::ControllerOptions options = sim_controller();
    options.build = kBuild;
    options.image = image;
    options.fan_out = 1;
    tool::Controller controller(client, options);
    return controller.run({});
  }
  // Programs that LFS i keeps.
  std::size_t kept(unsigned i) { return fixture.cluster.disk(i).files(fixture.cluster.root(i) + "/programs").size(); }

  std::shared_ptr<component::MemoryDisk> disk = component::MemoryDisk::make();
  std::shared_ptr<component::File> image;
  int workers = 0;
  ToolFixture fixture;
};

}  // namespace

TEST_CASE("the program is brought to the LFSs that lack it, and the job is done; the next time it is there") {
  Brought f({"lfs0", "lfs2"});
  f.fixture.run([&](Client& client) {
    for (int i = 1; i <= 2; ++i) {
      CHECK(must(f.run(client)) == std::vector<std::string>{"0", "1", "2", "3"});
      CHECK(f.workers == 4 * i);
      for (unsigned lfs = 0; lfs < 4; ++lfs) CHECK(f.kept(lfs) == (lfs % 2 == 0 ? 1 : 0));
    }
  });
}

TEST_CASE("a program that may not be brought is refused where it is missing, with the LFS and what to do") {
  Brought f({"lfs1"});
  f.fixture.run([&](Client& client) {
    f.image.reset();
    const auto unreadable = f.run(client);
    REQUIRE(!unreadable);
    CHECK(unreadable.error().code == Code::kUnsupported);
    CHECK(unreadable.error().text.find("worker 1 on lfs1") != std::string::npos);
    CHECK(unreadable.error().text.find("put the same program there") != std::string::npos);
    f.set_image(program_file(kBuild, 65u << 20));
    const auto too_long = f.run(client);
    REQUIRE(!too_long);
    CHECK(too_long.error().text.find("has 65 MiB, where programs of at most 64 MiB are brought") != std::string::npos);
    CHECK(f.kept(1) == 0);
    f.fixture.cluster.programs().missing_at.clear();
    CHECK(f.run(client));  // where it is, it may have any length
  });
}

TEST_CASE("an image that is another build than was said starts nothing") {
  Brought f({"lfs1"});
  f.fixture.run([&](Client& client) {
    f.set_image(program_file("another build"));
    const auto refused = f.run(client);
    REQUIRE(!refused);
    CHECK(refused.error().text.find("another build") != std::string::npos);
    CHECK(f.kept(1) == 0);
  });
}

}  // namespace pif::sim
