// Workers that send nonsense in what the library itself says: exchanges, and steps that all take together.
#include <fmt/format.h>
#include <catch2/catch.hpp>

#include "libtool/liar.h"
#include "pif/tool/exchange.h"
#include "pif/tool/team.h"

namespace pif {
namespace {

constexpr unsigned kLfss = 4;
constexpr std::uint64_t kFar = std::uint64_t{1} << 62;

struct Fixture : sim::LiarFixture {
  explicit Fixture(tool::WorkerFunction work) : LiarFixture(kLfss, std::move(work)) {}
  void run_with_file(const std::function<void(Client&)>& body) {
    run([&](Client& client) {
      CreateOptions options;
      options.format = Format::fixed(100);
      options.width = kLfss;
      File file = sim::must(client.create("/in", options));
      sim::must(file.write(std::vector<std::byte>(100 * 300)));
      sim::must(file.commit());
      body(client);
    });
  }
  static std::string run_tool(Client& client, bool apart) {
    tool::ControllerOptions options = sim::sim_controller();
    options.apart = apart;
    tool::Controller controller(client, options);
    sim::must(controller.open("/in"));
    CreateOptions create;
    create.format = Format::fixed(100);
    create.nodes = {4, 3, 2, 1};
    sim::must(controller.create("/out", create));
    const auto done = controller.run({});
    return done ? std::string() : done.error().to_string();
  }
};

Status exchange_rows(tool::Worker& worker) {
  PIF_TRY_VALUE(tool::Input* const input, worker.input(0));
  PIF_TRY_VALUE(tool::Output* const output, worker.output(0));
  return tool::exchange(worker, *input, *output);
}

Status step_together(tool::Worker& worker) {
  PIF_TRY_VALUE(tool::Team team, tool::Team::join(worker));
  PIF_TRY_VALUE(const auto numbers, team.all_gather_numbers({worker.rank(), 7}));
  if (numbers.at(3) != std::vector<std::uint64_t>{3, 7}) return fail(Code::kInternal, "other numbers");
  PIF_TRY_VALUE(const auto sums, team.sum({1, worker.rank()}));
  if (sums != std::vector<std::uint64_t>{4, 6}) return fail(Code::kInternal, "another sum");
  PIF_TRY_VALUE(const auto own, tool::SharedMemory::make(4096));
  PIF_TRY_VALUE(const auto shared, team.share(own));
  return team.in_turn([](std::string& state) -> Status {
    state += "x";
    return {};
  });
}

Status share_an_output(tool::Worker& worker) {
  PIF_TRY_VALUE(tool::Team team, tool::Team::join(worker));
  PIF_TRY_VALUE(tool::Output* const output, worker.output(0));
  PIF_TRY_VALUE(auto files, team.share_output(*output));
  for (const component::Files& one : files)
    if (!one.data) return fail(Code::kInternal, "a component is missing");
  files.clear();
  return team.barrier();
}

using Change = std::function<bool(job::Mail&, net::Buffer&)>;

// As an exchange's rows travel.
struct Rows {
  std::uint64_t first = 0, count = 0, stride = 0;
  bool placed = false;
  static auto members(auto& self) { return std::tie(self.first, self.count, self.stride, self.placed); }
};
Change in_exchange(std::function<void(Rows&)> change) {
  return sim::on_channels<Rows>([](std::uint32_t channel) { return channel == 0; },
                                [change = std::move(change)](Rows& rows, net::Buffer&) { return change(rows), true; });
}

}  // namespace

TEST_CASE("a worker that lies in an exchange ends the job, by a name") {
  const auto is_rows = [](const job::Mail& m) { return m.has_item() && m.item().head().size() == 25; };
  const std::vector<std::pair<const char*, Change>> lies = {
      {"rows beyond all", in_exchange([](Rows& rows) { rows.first = kFar; })},
      {"more rows than a window", in_exchange([](Rows& rows) { rows.count = kFar; })},
      {"no rows", in_exchange([](Rows& rows) { rows.count = 0; })},
      {"a stride beyond all", in_exchange([](Rows& rows) { rows.stride = kFar; })},
      {"rows cut off",
       [&](job::Mail& m, net::Buffer& body) { return is_rows(m) && (body.shrink(body.size() / 2), true); }},
      {"leave beyond all",
       [](job::Mail& m, net::Buffer&) {  // every source has rows for one worker alone, and 2 has those for 1
         if (m.has_grant()) m.mutable_grant()->set_limit(UINT64_MAX);
         return m.has_grant();
       }},
      {"a word of a tool",
       [&](job::Mail& m, net::Buffer&) { return is_rows(m) && (m.mutable_item()->set_head("x"), true); }},
  };
  Fixture fixture(exchange_rows);
  fixture.run_with_file([&](Client& client) {
    for (const auto& [what, change] : lies) {
      INFO(what);
      fixture.liar().begin(change, std::string_view(what) == "leave beyond all" ? 1 : 0);
      const std::string error = fixture.run_tool(client, true);
      INFO(error);
      CHECK(fixture.liar().has_lied());
      CHECK(error.find("worker 1 sent nonsense: ") != std::string::npos);
    }
  });
  CHECK(fixture.thrown() == "");
}

TEST_CASE("what workers give one another in common is what it must be, or ends the job by a name") {
  const auto too_much = [](job::Mail& mail, net::Buffer& body) {
    if (!sim::is_value(mail)) return false;
    sim::set_size_of_value(mail, body.size() - 1);
    return true;
  };
  const auto cut_off = [](job::Mail& mail, net::Buffer& body) {
    if (!sim::is_value(mail)) return false;
    body.shrink(7);
    return true;
  };
  Fixture fixture(step_together);
  fixture.run_with_file([&](Client& client) {
    REQUIRE(fixture.run_tool(client, false) == "");
    for (unsigned step = 0; step < 3; ++step) {  // the numbers, the sum, the sizes of what is shared
      for (const Change& change :
           {sim::another_value("{}"), sim::another_value(std::string(24, '\xff')), Change(too_much), Change(cut_off)}) {
        fixture.liar().begin(change, step);
        const std::string error = fixture.run_tool(client, false);
        INFO("step " << step << ": " << error);
        CHECK(fixture.liar().has_lied());
        CHECK(error.find("worker 1 ") != std::string::npos);
      }
    }
  });
  CHECK(fixture.thrown() == "");
}

TEST_CASE("a worker that does not pass its component of an output ends the job, by a name") {
  Fixture fixture(share_an_output);
  fixture.run_with_file([&](Client& client) {
    REQUIRE(fixture.run_tool(client, false) == "");
    fixture.liar().begin_without_handles();
    const std::string error = fixture.run_tool(client, false);
    INFO(error);
    CHECK(fixture.liar().has_lied());
    CHECK(error.find("worker 1 sent nonsense: ") != std::string::npos);
  });
  CHECK(fixture.thrown() == "");
}

TEST_CASE("whatever byte of a worker's messages is wrong, an exchange ends with an error or does not notice") {
  Fixture fixture(exchange_rows);
  fixture.run_with_file([&](Client& client) {
    for (std::uint64_t seed = 1; seed <= 150; ++seed) {
      fixture.liar().begin(sim::any_change(seed), static_cast<unsigned>(seed % 11));
      (void)fixture.run_tool(client, seed % 2 == 0);
      REQUIRE(fixture.thrown() == "");
    }
  });
}

}  // namespace pif
