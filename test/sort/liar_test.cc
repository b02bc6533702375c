// Workers of a sort that send nonsense to others.
#include <fmt/format.h>
#include <catch2/catch.hpp>

#include "../../tools/pif_sort/messages.h"
#include "../../tools/pif_sort/token/batched_merge.h"
#include "../../tools/pif_sort/token/figure_merge.h"
#include "libtool/liar.h"

namespace pif::sort {
namespace {

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
  options.sources = {way.source};
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
    {.merge = MergeKind::kToken, .unique = true},
    {.merge = MergeKind::kToken, .token_batch = 0},
    {.merge = MergeKind::kToken, .token_batch = 0, .apart = true, .unique = true},
    {.merge = MergeKind::kPipelined},
    {.merge = MergeKind::kPipelined, .unique = true, .source = "/lines"},
    {.merge = MergeKind::kPipelined, .apart = true, .source = "/lines"},
    {.merge = MergeKind::kPipelined, .token_batch = 0, .apart = true},
};

using Batched = BatchedMerge;
using Change = sim::Liar::Change;

// As rows of sub-files, pieces and row blocks travel.
struct Rows {
  std::uint64_t first = 0, count = 0;
  bool placed = false;
  static auto members(auto& self) { return std::tie(self.first, self.count, self.placed); }
};
struct Piece {
  std::uint32_t count = 0;
  bool is_last = false;
  static auto members(auto& self) { return std::tie(self.count, self.is_last); }
};
struct Block {
  std::uint64_t first = 0, count = 0;
  static auto members(auto& self) { return std::tie(self.first, self.count); }
};

bool is_merges(std::uint32_t channel) { return channel % 2 == 1; }
bool is_root(std::uint32_t channel) { return channel == 1; }
constexpr std::uint32_t kEndChannel = 15;  // of the result, behind two for each of the tree's 7 nodes
struct ResultEnd {
  std::uint64_t records = 0;
  static auto members(auto& self) { return std::tie(self.records); }
};
bool is_subfiles(std::uint32_t channel) { return channel > 0 && channel % 2 == 0; }

// change(T&, body) of the words of a merge that are a T, or become something else by it.
template <typename T, typename F>
Change word(F change) {
  using Word = std::conditional_t<std::is_same_v<T, FigureMerge::Token>, FigureMerge::Word, Batched::Word>;
  return sim::on_channels<Word>(is_merges, [change](Word& word, net::Buffer& body) {
    if (!std::holds_alternative<T>(word)) return false;
    change(word, std::get<T>(word), body);
    return true;
  });
}
template <typename T>
Change head(bool (*is_its)(std::uint32_t), std::function<void(T&, net::Buffer&)> change) {
  return sim::on_channels<T>(is_its, [change = std::move(change)](T& head, net::Buffer& body) {
    change(head, body);
    return true;
  });
}
template <typename F>
Change grant(bool (*is_its)(std::uint32_t), F change) {
  return [is_its, change](job::Mail& mail, net::Buffer&) {
    return mail.has_grant() && is_its(mail.grant().channel()) && (change(*mail.mutable_grant()), true);
  };
}
net::Buffer first_of(const net::Buffer& body, std::size_t bytes) {
  return net::Buffer::copy_of(body.span().first(bytes));
}

// Numbers of records of the root's become a part of a token, with the same body.
Change early_part() {
  return sim::on_channels<Batched::Word>(is_root, [](Batched::Word& word, net::Buffer&) {
    if (!std::holds_alternative<Batched::Place>(word)) return false;
    word = MoreOfToken();
    return true;
  });
}
// A T of the root's words becomes an end of the result; the number is even right.
template <typename Word, typename T>
Change early_end() {
  return [](job::Mail& mail, net::Buffer& body) {
    if (!mail.has_item() || !is_root(mail.item().channel())) return false;
    const auto word = tool::unpack_head<Word>(mail.item().head());
    if (!word || !std::holds_alternative<T>(*word)) return false;
    mail.mutable_item()->set_channel(kEndChannel);
    mail.mutable_item()->set_head(tool::pack_head(ResultEnd{400}));
    body = net::Buffer();
    return true;
  };
}

struct Lie {
  const char* what;
  Way way;
  Change change;
};

constexpr std::uint64_t kFar = std::uint64_t{1} << 62;
const Way kToken = {.merge = MergeKind::kToken};
const Way kTokenByMessage = {.merge = MergeKind::kPipelined, .apart = true, .source = "/lines"};
const Way kUniqueToken = {.merge = MergeKind::kToken, .unique = true};
const Way kUniqueFigure = {.merge = MergeKind::kToken, .token_batch = 0, .unique = true};
const Way kFigure = {.merge = MergeKind::kToken, .token_batch = 0};
const Way kFarSplit = {.apart = true};

#define PIF_LIE(kind, statement) \
  word<kind>([]([[maybe_unused]] auto& w, [[maybe_unused]] auto& f, [[maybe_unused]] net::Buffer& body) { statement; })
#define PIF_LIE_OF(kind, channel, statement) \
  head<kind>(channel, []([[maybe_unused]] auto& f, [[maybe_unused]] net::Buffer& body) { statement; })

const std::vector<Lie> kLies = {
    {"a merge that is none", kToken,
     [](job::Mail& mail, net::Buffer&) {
       return mail.has_item() && is_merges(mail.item().channel()) && (mail.mutable_item()->set_channel(1999), true);
     }},
    {"a token for a block that is none", kToken, PIF_LIE(Batched::Token, f.block = kFar)},
    {"a token from a worker that is none", kToken, PIF_LIE(Batched::Token, f.holder = 77)},
    {"a token of another block that is none", kToken, PIF_LIE(Batched::Token, f.other_block = kFar)},
    {"a token of records that are none", kToken, PIF_LIE(Batched::Token, f.other_from = 17)},
    {"a token with a number beyond all", kToken, PIF_LIE(Batched::Token, f.taken = UINT64_MAX)},
    {"a token that dropped more than it took", kUniqueToken, PIF_LIE(Batched::Token, f.dropped = f.taken + 1)},
    {"a token that drops where all are wanted", kToken, PIF_LIE(Batched::Token, f.dropped = 1)},
    {"a token of a side that goes on, and is said to be over", kToken, PIF_LIE(Batched::Token, f.other_block = 13)},
    {"a last key that is longer than the token", kUniqueToken, PIF_LIE(Batched::Token, f.last_bytes = UINT64_MAX)},
    {"a last key where none counts", kToken, PIF_LIE(Batched::Token, f.last_bytes = 8)},
    {"a part of a token that is empty", kToken, PIF_LIE(Batched::Token, (w = MoreOfToken(), body = net::Buffer()))},
    {"a part of a token, and another worker sends the token", kToken, early_part()},
    {"an end of the result before it is there", kUniqueToken, early_end<Batched::Word, Batched::Place>()},
    {"an end of the result before it is there, in the figure", kUniqueFigure,
     early_end<FigureMerge::Word, FigureMerge::Token>()},
    {"an end of a merge before it is there, in the figure", kFigure,
     PIF_LIE(FigureMerge::Token, (w = FigureMerge::End(), body = net::Buffer()))},
    {"a token with keys cut off", kToken, PIF_LIE(Batched::Token, body = first_of(body, body.size() - 1))},
    {"a token without keys", kToken, PIF_LIE(Batched::Token, body = net::Buffer())},
    {"numbers of records that are none", kToken, PIF_LIE(Batched::Place, f.first = kFar)},
    {"more numbers than there are", kToken, PIF_LIE(Batched::Place, f.count = kFar)},
    {"numbers beyond all", kToken, PIF_LIE(Batched::Place, f.number = UINT64_MAX)},
    {"numbers whose distances are cut off", kToken, PIF_LIE(Batched::Place, body = first_of(body, 3))},
    {"a rest of records that are none", kToken, PIF_LIE(Batched::Token, (w = Batched::Rest{kFar, 0}))},
    {"a rest with a number beyond all", kToken, PIF_LIE(Batched::Token, (w = Batched::Rest{0, UINT64_MAX}))},
    {"rows that nobody asked for", kTokenByMessage, PIF_LIE_OF(Rows, is_subfiles, f.first = kFar)},
    {"more rows than there are", kTokenByMessage, PIF_LIE_OF(Rows, is_subfiles, f.count = UINT64_MAX)},
    {"rows in memory that is not shared", kTokenByMessage, PIF_LIE_OF(Rows, is_subfiles, f.placed = true)},
    {"rows without their bodies", kTokenByMessage, PIF_LIE_OF(Rows, is_subfiles, body = net::Buffer())},
    {"room where there is none", kTokenByMessage, grant(is_subfiles, [](auto& g) { g.set_limit(kFar); })},
    {"a token from a worker that is none, in the figure", kFigure, PIF_LIE(FigureMerge::Token, f.source = 4096)},
    {"a token with a number beyond all, in the figure", kFigure, PIF_LIE(FigureMerge::Token, f.number = UINT64_MAX)},
    {"a piece of more records than came", kFarSplit, PIF_LIE_OF(Piece, is_merges, f.count = UINT32_MAX)},
    {"a piece that is cut off", kFarSplit, PIF_LIE_OF(Piece, is_merges, body = first_of(body, body.size() / 2))},
    {"more pieces than it may send", kFarSplit, grant(is_merges, [](auto& g) { g.set_limit(kFar); })},
    {"rows of the output that are none", kFarSplit, PIF_LIE_OF(Block, is_subfiles, f.first = kFar)},
    {"rows of the output, beyond their number", kFarSplit, PIF_LIE_OF(Block, is_subfiles, f.count = kFar)},
    {"rows of the output, fewer bytes than they have", kFarSplit, PIF_LIE_OF(Block, is_subfiles, body = net::Buffer())},
    {"nothing at all", kFarSplit,
     [](job::Mail& mail, net::Buffer&) {
       return mail.has_item() && is_subfiles(mail.item().channel()) && (mail.mutable_item()->clear_head(), true);
     }},
};

}  // namespace

TEST_CASE("a worker that lies to another ends the sort, by a name") {
  Fixture fixture;
  fixture.run_with_files([&](Client& client) {
    for (const Lie& lie : kLies) {
      INFO(lie.what);
      fixture.liar().begin(lie.change);
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
  fixture.run_with_files([&](Client& client) {
    for (const Way& way : kWays) {
      for (unsigned step = 0; step < 5; ++step) {
        for (const std::string& text : {std::string("{}"), std::string("\xff\xff\xff"), std::string(8, '\xff')}) {
          fixture.liar().begin(sim::another_value(text), step);
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
