// Workers of a sort that send nonsense to others.
#include <fmt/format.h>
#include <catch2/catch.hpp>

#include "../../tools/pif_sort/messages.h"
#include "libtool/liar.h"
#include "pif/tool/ordered_output.h"

namespace pif::sort {
namespace {

using message::MergeMessage;

constexpr unsigned kLfss = 4;

void put(Client& client, const std::string& path, const Format& format, unsigned count) {
  CreateOptions options;
  options.format = format;
  options.width = kLfss;
  File file = sim::must(client.create(path, options));
  std::string all;
  std::vector<std::uint32_t> lengths;
  for (unsigned i = 0; i < count; ++i) {
    const std::string record =
        fmt::format("{:08}", i * 7919 % count) + (format.is_fixed() ? "" : std::string(i % 5, 'x') + "\n");
    all += record;
    lengths.push_back(static_cast<std::uint32_t>(record.size()));
  }
  const auto bytes = std::as_bytes(std::span(all));
  sim::must(format.is_fixed() ? file.write(bytes) : file.write_batch(lengths, bytes));
  sim::must(file.commit());
}

struct Way {
  MergeKind merge = MergeKind::kSplit;
  std::uint64_t token_batch = 16;
  bool apart = false, unique = false;
  const char* source = "/fixed";
};

SortOptions options_of(const Way& way) {
  SortOptions options;
  options.source = way.source;
  options.target = "/out";
  options.memory = 1u << 30;
  options.merge = way.merge;
  options.token_batch = way.token_batch;
  options.unique = way.unique;
  return options;
}

struct Fixture : sim::LiarFixture {
  Fixture() : LiarFixture(kLfss, work) {}
  // The job's error; empty: none.
  std::string sort(Client& client, const Way& way) {
    tool::ControllerOptions options = sim::sim_controller();
    options.apart = way.apart;
    tool::Controller controller(client, options);
    const auto done = control(controller, options_of(way));
    return done ? std::string() : done.error().to_string();
  }
  void run_with_files(const std::function<void(Client&)>& body) {
    run([&](Client& client) {
      put(client, "/fixed", Format::fixed(8), 400);
      put(client, "/lines", Format::lines(), 400);
      body(client);
    });
  }
};

const std::vector<Way> kWays = {
    {},
    {.unique = true},
    {.source = "/lines"},
    {.apart = true},
    {.apart = true, .source = "/lines"},
    {.apart = true, .unique = true},
    {.merge = MergeKind::kToken},
    {.merge = MergeKind::kToken, .source = "/lines"},
    {.merge = MergeKind::kToken, .apart = true},
    {.merge = MergeKind::kToken, .token_batch = 0},
    {.merge = MergeKind::kPipelined},
    {.merge = MergeKind::kPipelined, .apart = true, .source = "/lines"},
    {.merge = MergeKind::kPipelined, .token_batch = 0, .apart = true},
};

// A change of MergeMessages that have a field.
template <typename F>
sim::Liar::Change of_merge(F change) {
  return [change](job::Mail& mail, net::Buffer& body) {
    MergeMessage message;
    if (!mail.has_word() || mail.word().head().starts_with(tool::OrderedOutput::kSign)) return false;
    if (!message.ParseFromString(mail.word().head()) || !change(message, body)) return false;
    mail.mutable_word()->set_head(message.SerializeAsString());
    return true;
  };
}

struct Lie {
  const char* what;
  Way way;
  std::function<bool(MergeMessage&, net::Buffer&)> change;
};

constexpr std::uint64_t kFar = std::uint64_t{1} << 62;
const Way kToken = {.merge = MergeKind::kToken};
const Way kTokenByMessage = {.merge = MergeKind::kPipelined, .apart = true, .source = "/lines"};
const Way kFigure = {.merge = MergeKind::kToken, .token_batch = 0};
const Way kFarSplit = {.apart = true};

#define PIF_LIE(field, statement)                           \
  [](MergeMessage& m, [[maybe_unused]] net::Buffer& body) { \
    if (!m.has_##field()) return false;                     \
    [[maybe_unused]] auto& f = *m.mutable_##field();        \
    statement;                                              \
    return true;                                            \
  }

const std::vector<Lie> kLies = {
    {"a merge that is none", kToken, PIF_LIE(token, m.set_node(999))},
    {"a token for a block that is none", kToken, PIF_LIE(token, f.set_block(kFar))},
    {"a token from a worker that is none", kToken, PIF_LIE(token, f.set_holder(77))},
    {"a token of another block that is none", kToken, PIF_LIE(token, f.set_other_block(kFar))},
    {"a token of records that are none", kToken, PIF_LIE(token, f.set_other_from(17))},
    {"a token with a number beyond all", kToken, PIF_LIE(token, f.set_number(UINT64_MAX))},
    {"a token with keys cut off", kToken,
     PIF_LIE(token, body = net::Buffer::copy_of(body.span().first(body.size() - 1)))},
    {"a token without keys", kToken, PIF_LIE(token, body = net::Buffer())},
    {"numbers of records that are none", kToken, PIF_LIE(place, f.set_first(kFar))},
    {"more numbers than there are", kToken, PIF_LIE(place, f.set_count(kFar))},
    {"numbers beyond all", kToken, PIF_LIE(place, f.set_number(UINT64_MAX))},
    {"numbers whose distances are cut off", kToken, PIF_LIE(place, body = net::Buffer::copy_of(body.span().first(3)))},
    {"a rest of records that are none", kToken, PIF_LIE(token, m.mutable_rest()->set_first(kFar))},
    {"a rest with a number beyond all", kToken, PIF_LIE(token, m.mutable_rest()->set_number(UINT64_MAX))},
    {"rows that nobody asked for", kTokenByMessage, PIF_LIE(rows, f.set_first(kFar))},
    {"more rows than there are", kTokenByMessage, PIF_LIE(rows, f.set_count(UINT64_MAX))},
    {"rows in memory that is not shared", kTokenByMessage, PIF_LIE(rows, f.set_placed(true))},
    {"rows without their bodies", kTokenByMessage, PIF_LIE(rows, body = net::Buffer())},
    {"room where there is none", kTokenByMessage, PIF_LIE(settled, f.set_row(kFar))},
    {"a step from a worker that is none", kFigure, PIF_LIE(step, f.set_holder(4096))},
    {"a step with a number beyond all", kFigure, PIF_LIE(step, f.set_number(UINT64_MAX))},
    {"a piece of an LFS that is none", kFarSplit, PIF_LIE(piece, m.set_node(99))},
    {"a piece of another's LFS", kFarSplit, PIF_LIE(piece, m.set_node(m.node() == 0 ? 1 : 0))},
    {"a piece of more records than came", kFarSplit, PIF_LIE(piece, f.set_count(UINT32_MAX))},
    {"a piece that is cut off", kFarSplit,
     PIF_LIE(piece, body = net::Buffer::copy_of(body.span().first(body.size() / 2)))},
    {"rows of the output that are none", kFarSplit, PIF_LIE(row_block, f.set_first(kFar))},
    {"rows of the output, beyond their number", kFarSplit, PIF_LIE(row_block, f.set_count(kFar))},
    {"rows of another LFS", kFarSplit, PIF_LIE(row_block, m.set_node(99))},
    {"more bytes written than were sent", kFarSplit, PIF_LIE(written, f.set_bytes(kFar))},
    {"bytes written on an LFS that is none", kFarSplit, PIF_LIE(written, m.set_node(99))},
    {"nothing at all", kFarSplit, PIF_LIE(row_block, m.clear_what())},
};

}  // namespace

TEST_CASE("a worker that lies to another ends the sort, by a name") {
  Fixture fixture;
  fixture.run_with_files([&](Client& client) {
    for (const Lie& lie : kLies) {
      INFO(lie.what);
      fixture.liar().begin(of_merge(lie.change));
      const std::string error = fixture.sort(client, lie.way);
      CHECK(fixture.liar().has_lied());
      INFO(error);
      CHECK(error.find("worker 1 sent nonsense: ") != std::string::npos);
      CHECK(client.stat("/out").error().code == Code::kNotFound);
    }
  });
  CHECK(fixture.thrown() == "");
}

TEST_CASE("whatever byte of a worker's messages is wrong, the sort ends with an error or does not notice") {
  Fixture fixture;
  fixture.run_with_files([&](Client& client) {
    for (std::size_t i = 0; i < kWays.size(); ++i) {
      for (std::uint64_t seed = 1; seed <= 8; ++seed) {
        fixture.liar().begin(sim::any_change(seed * 64 + i), static_cast<unsigned>(seed * 5 % 37));
        const std::string error = fixture.sort(client, kWays[i]);
        INFO("way " << i << " seed " << seed << ": " << error);
        CHECK(client.stat("/out").has_value() == error.empty());
        if (error.empty()) sim::must(client.remove("/out"));
        REQUIRE(fixture.thrown() == "");
      }
    }
  });
}

TEST_CASE("what the workers of a sort give one another in common is checked") {
  Fixture fixture;
  const auto value = [](std::string text) {
    return [text](job::Mail& mail, net::Buffer& body) {
      if (!mail.has_here() || mail.here().size() == 0) return false;
      mail.mutable_here()->set_size(text.size());
      body = net::Buffer::copy_of(std::as_bytes(std::span(text)));
      return true;
    };
  };
  fixture.run_with_files([&](Client& client) {
    for (const Way& way : kWays) {
      for (unsigned step = 0; step < 5; ++step) {
        for (const std::string& text : {std::string("{}"), std::string("\xff\xff\xff"), std::string(8, '\xff')}) {
          fixture.liar().begin(value(text), step);
          const std::string error = fixture.sort(client, way);
          INFO("step " << step << ": " << error);
          if (error.empty()) sim::must(client.remove("/out"));
          CHECK((error.empty() ? !fixture.liar().has_lied() : error.find("worker 1 ") != std::string::npos));
          REQUIRE(fixture.thrown() == "");
        }
      }
    }
  });
}

}  // namespace pif::sort
