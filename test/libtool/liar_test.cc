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

Change in_exchange(std::function<bool(job::Mail&)> change) {
  return [change = std::move(change)](job::Mail& mail, net::Buffer&) { return change(mail); };
}

}  // namespace

TEST_CASE("a worker that lies in an exchange ends the job, by a name") {
  const std::vector<std::pair<const char*, Change>> lies = {
      {"rows beyond all",
       in_exchange([](job::Mail& m) { return m.has_batch() && (m.mutable_batch()->set_first(kFar), true); })},
      {"more rows than a window",
       in_exchange([](job::Mail& m) { return m.has_batch() && (m.mutable_batch()->set_count(kFar), true); })},
      {"no rows", in_exchange([](job::Mail& m) { return m.has_batch() && (m.mutable_batch()->set_count(0), true); })},
      {"a stride beyond all",
       in_exchange([](job::Mail& m) { return m.has_batch() && (m.mutable_batch()->set_stride(kFar), true); })},
      {"rows cut off",
       [](job::Mail& m, net::Buffer& body) { return m.has_batch() && (body.shrink(body.size() / 2), true); }},
      {"leave beyond all",
       in_exchange([](job::Mail& m) { return m.has_grant() && (m.mutable_grant()->set_limit(UINT64_MAX), true); })},
      {"a window of another size",
       in_exchange([](job::Mail& m) { return m.has_window() && (m.mutable_window()->set_bytes(5), true); })},
      {"a word of a tool",
       in_exchange([](job::Mail& m) { return m.has_batch() && (m.mutable_word()->set_head("x"), true); })},
  };
  Fixture fixture(exchange_rows);
  fixture.run_with_file([&](Client& client) {
    for (const auto& [what, change] : lies) {
      INFO(what);
      fixture.liar().begin(change);
      const std::string error = fixture.run_tool(client, true);
      INFO(error);
      CHECK(fixture.liar().has_lied());
      CHECK(error.find("worker 1 sent nonsense: ") != std::string::npos);
    }
  });
  CHECK(fixture.thrown() == "");
}

TEST_CASE("what workers give one another in common is what it must be, or ends the job by a name") {
  const auto value = [](std::string text) {
    return [text](job::Mail& mail, net::Buffer& body) {
      if (!mail.has_here() || mail.here().size() == 0) return false;
      mail.mutable_here()->set_size(text.size());
      body = net::Buffer::copy_of(std::as_bytes(std::span(text)));
      return true;
    };
  };
  const auto too_much = [](job::Mail& mail, net::Buffer& body) {
    if (!mail.has_here() || body.empty()) return false;
    mail.mutable_here()->set_size(body.size() - 1);
    return true;
  };
  Fixture fixture(step_together);
  fixture.run_with_file([&](Client& client) {
    REQUIRE(fixture.run_tool(client, false) == "");
    for (unsigned step = 0; step < 3; ++step) {  // the numbers, the sum, the sizes of what is shared
      for (const Change& change : {Change(value("{}")), Change(value(std::string(24, '\xff'))), Change(too_much)}) {
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
