// What the controller and the workers of a transpose take from one another, right and wrong; and workers that lie.
#include "../../tools/pif_transpose/messages.h"

#include <limits>

#include <catch2/catch.hpp>

#include "libtool/liar.h"

namespace pif::transpose {
namespace {

JobSpec a_spec() {
  JobSpec spec;
  spec.shape = {{4, matrix::BitOrder::kLsb}, {2, 30}, {1, 16}};
  spec.algorithm = Algorithm::kRecursive;
  spec.memory = 12345;
  return spec;
}
template <typename T>
std::string error_of(const Result<T>& result) {
  if (result) return {};
  CHECK(result.error().code == Code::kCorrupt);
  return result.error().text;
}
bool says(const std::string& error, std::string_view text) { return error.find(text) != std::string::npos; }
template <typename F>
std::string error_of_spec(F change) {
  JobSpec spec = a_spec();
  change(spec);
  return error_of(unpack_job_spec(pack(spec), 30, 8));
}

constexpr unsigned kLfss = 4;

struct Way {
  Algorithm algorithm = Algorithm::kDirect;
  bool apart = false;
};
const std::vector<Way> kWays = {
    {}, {Algorithm::kDirect, true}, {Algorithm::kRecursive, false}, {Algorithm::kRecursive, true}};

struct Fixture : sim::LiarFixture {
  Fixture() : LiarFixture(kLfss, work) {}
  void run_with_file(const std::function<void(Client&)>& body) {
    run([&](Client& client) {
      CreateOptions options;
      options.format = Format::fixed(32);
      options.width = kLfss;
      File file = sim::must(client.create("/in", options));
      sim::must(file.write(std::vector<std::byte>(32 * 100, std::byte{0x5a})));
      sim::must(file.commit());
      body(client);
    });
  }
  std::string transpose(Client& client, const Way& way) {
    tool::ControllerOptions options = sim::sim_controller();
    options.apart = way.apart;
    tool::Controller controller(client, options);
    TransposeOptions wanted;
    wanted.source = "/in";
    wanted.target = "/out";
    wanted.element_bits = 8;
    wanted.columns = 32;
    wanted.algorithm = way.algorithm;
    wanted.memory = 1u << 14;  // several bands, so that every worker has one
    const auto done = control(controller, wanted);
    return done ? std::string() : done.error().to_string();
  }
};

// As pieces of a direct transpose, rows of bands and rows of an output travel.
struct Piece {
  std::uint64_t offset = 0, bytes = 0;
  bool is_last = false;
  static auto members(auto& self) { return std::tie(self.offset, self.bytes, self.is_last); }
};
struct Band {
  std::uint64_t band = 0, first = 0;
  static auto members(auto& self) { return std::tie(self.band, self.first); }
};
struct Rows {
  std::uint64_t first = 0, count = 0, stride = 0;
  bool placed = false;
  static auto members(auto& self) { return std::tie(self.first, self.count, self.stride, self.placed); }
};
template <typename T>
sim::Liar::Change on_channel(std::uint32_t number, std::function<void(T&, net::Buffer&)> change) {
  return sim::on_channels<T>([number](std::uint32_t channel) { return channel == number; },
                             [change = std::move(change)](T& head, net::Buffer& body) {
                               change(head, body);
                               return true;
                             });
}

constexpr std::uint64_t kFar = std::uint64_t{1} << 62;

}  // namespace

TEST_CASE("what is to be transposed comes to the workers as it was said, if the file holds it") {
  const auto back = unpack_job_spec(pack(a_spec()), 30, 8);
  REQUIRE(back);
  CHECK(back->shape.element == a_spec().shape.element);
  CHECK(back->shape.rows.begin == 2);
  CHECK(back->shape.columns.end == 16);
  CHECK(back->algorithm == Algorithm::kRecursive);
  CHECK(back->memory == 12345);

  CHECK(says(error_of(unpack_job_spec("{\"bits\":1}", 30, 8)), "the controller sent nonsense"));
  CHECK(says(error_of_spec([](JobSpec& s) { s.shape.element.bits = 3; }), "elements of 3 bits"));
  CHECK(says(error_of_spec([](JobSpec& s) { s.shape.rows.end = 31; }), "rows 2:31"));
  CHECK(says(error_of_spec([](JobSpec& s) { s.shape.rows.begin = 30; }), "rows 30:30"));
  CHECK(says(error_of_spec([](JobSpec& s) { s.shape.columns.end = UINT64_MAX; }), "columns"));
  CHECK(says(error_of_spec([](JobSpec& s) { s.algorithm = static_cast<Algorithm>(9); }), "algorithm 9"));
}

TEST_CASE("what a worker of a transpose comes to is taken as it said it, if it can be true") {
  Outcome outcome;
  outcome.phases = {{"passes", 1.5}};
  const auto back = unpack_outcome(pack(outcome), 2);
  REQUIRE(back);
  CHECK(back->phases == outcome.phases);
  CHECK(says(error_of(unpack_outcome("\xff", 2)), "worker 2 sent nonsense"));
  outcome.phases[0].second = std::numeric_limits<double>::infinity();
  CHECK(says(error_of(unpack_outcome(pack(outcome), 2)), "worker 2 sent nonsense"));
  outcome.phases[0].second = -1;
  CHECK(says(error_of(unpack_outcome(pack(outcome), 2)), "worker 2 sent nonsense"));
}

TEST_CASE("a worker that lies to another ends the transpose, by a name") {
  const Way direct{Algorithm::kDirect, true}, recursive{Algorithm::kRecursive, true};
  const auto pieces = [](auto change) { return on_channel<Piece>(1, change); };
  const auto rows = [](auto change) { return on_channel<Band>(1, change); };
  const auto output = [](auto change) { return on_channel<Rows>(0, change); };
  const std::vector<std::tuple<const char*, Way, sim::Liar::Change>> lies = {
      {"pieces beyond the rows", direct, pieces([](Piece& p, net::Buffer&) { p.offset = kFar; })},
      {"pieces longer than rows", direct, pieces([](Piece& p, net::Buffer&) { p.bytes = kFar; })},
      {"pieces that did not come", direct, pieces([](Piece&, net::Buffer& body) { body = net::Buffer(); })},
      {"a head that is none", direct,
       [](job::Mail& m, net::Buffer&) {
         return m.has_item() && m.item().channel() == 1 && (m.mutable_item()->set_head("x"), true);
       }},
      {"a band that is none", recursive, rows([](Band& b, net::Buffer&) { b.band = kFar; })},
      {"rows beyond a band", recursive, rows([](Band& b, net::Buffer&) { b.first = kFar; })},
      {"half a row", recursive, rows([](Band&, net::Buffer& body) { body.shrink(body.size() - 1); })},
      {"rows of the output that are none", recursive, output([](Rows& r, net::Buffer&) { r.first = kFar; })},
      {"more rows than came", recursive, output([](Rows& r, net::Buffer&) { r.count = kFar; })},
  };
  Fixture fixture;
  fixture.run_with_file([&](Client& client) {
    for (const auto& [what, way, change] : lies) {
      INFO(what);
      fixture.liar().begin(change);
      const std::string error = fixture.transpose(client, way);
      INFO(error);
      CHECK(fixture.liar().has_lied());
      CHECK(says(error, "worker 1 sent nonsense: "));
      CHECK(client.stat("/out").error().code == Code::kNotFound);
    }
  });
  CHECK(fixture.thrown() == "");
}

TEST_CASE("whatever byte of a worker's messages is wrong, the transpose ends with an error or does not notice") {
  Fixture fixture;
  fixture.run_with_file([&](Client& client) {
    for (std::size_t i = 0; i < kWays.size(); ++i) {
      for (std::uint64_t seed = 1; seed <= 60; ++seed) {
        fixture.liar().begin(sim::any_change(seed * 64 + i), static_cast<unsigned>(seed * 5 % 23));
        const std::string error = fixture.transpose(client, kWays[i]);
        INFO("way " << i << " seed " << seed << ": " << error);
        CHECK(client.stat("/out").has_value() == error.empty());
        if (error.empty()) sim::must(client.remove("/out"));
        REQUIRE(fixture.thrown() == "");
      }
    }
  });
}

}  // namespace pif::transpose
