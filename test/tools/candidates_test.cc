// What may stand at the end of a command line.
#include <algorithm>

#include <catch2/catch.hpp>

#include "../../tools/pif/command/program.h"
#include "../../tools/pif/completion/candidates.h"

using namespace pif;
using namespace pif::cli;

namespace {

using Words = std::vector<std::string>;

Candidates candidates(const Words& words) {
  CLI::App app("pif", "pif");
  Program program;
  add_all_commands(app, program);
  return candidates_for(app, {"sort", "copy"}, words);
}

Words words_of(const Candidates& candidates) {
  Words out;
  for (const auto& candidate : candidates.words) out.push_back(candidate.word);
  std::sort(out.begin(), out.end());
  return out;
}

NameKind kind(const Words& words) { return candidates(words).names; }

}  // namespace

TEST_CASE("commands and tools come first") {
  CHECK(words_of(candidates({"st"})) == Words{"stat", "status", "stripe"});
  CHECK(words_of(candidates({"so"})) == Words{"sort"});
  CHECK(words_of(candidates({"help", "st"})) == Words{"stat", "status", "stripe"});
  CHECK(words_of(candidates({"node", "re"})) == Words{"replace"});
  CHECK(words_of(candidates({"l"})) == Words{"ln", "locate", "ls"});  // ln is not offered
  CHECK(candidates({""}).words.size() > 30);
  CHECK(words_of(candidates({"--pif", "/d", "stat"})) == Words{"stat", "status"});
}

TEST_CASE("every option of every command is offered, from the table that parses it") {
  CLI::App app("pif", "pif");
  Program program;
  add_all_commands(app, program);
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    for (const CLI::Option* option : command->get_options()) {
      for (const std::string& name : option->get_lnames()) {
        const Words found = words_of(candidates_for(app, {}, {command->get_name(), "--" + name}));
        CHECK(std::find(found.begin(), found.end(), "--" + name) != found.end());
      }
    }
  }
}

TEST_CASE("values of an option are offered where there is a list") {
  CHECK(words_of(candidates({"ls", "--route", "u"})) == Words{"unix"});
  CHECK(words_of(candidates({"ls", "--route=u"})) == Words{"--route=unix"});
  CHECK(words_of(candidates({"ls", "--route", "=", "u"})) == Words{"unix"});
  CHECK(words_of(candidates({"completion", ""})) == Words{"bash", "fish", "zsh"});
  CHECK(words_of(candidates({"key", ""})) == Words{"rotate"});
  CHECK(words_of(candidates({"key", "rotate", "--o"})) == Words{"--old-good-for"});
}

TEST_CASE("names are of the file system, or local, as the command takes them") {
  for (const char* command :
       {"ls", "cat", "rm", "stat", "cp", "mv", "du", "find", "head", "tail", "wc", "mkdir", "tree", "locate"})
    CHECK(kind({command, "/a"}) == NameKind::kPath);
  CHECK(kind({"chmod", ""}) == NameKind::kNone);
  CHECK(kind({"chmod", "0644", ""}) == NameKind::kPath);
  CHECK(kind({"put", ""}) == NameKind::kPathOrLocal);
  CHECK(kind({"get", "/a", ""}) == NameKind::kPathOrLocal);
  CHECK(kind({"append", ""}) == NameKind::kLocal);
  CHECK(kind({"append", "a", ""}) == NameKind::kPath);
  CHECK(kind({"up", ""}) == NameKind::kLocalFolder);
  CHECK(kind({"ls", "--pif", ""}) == NameKind::kLocalFolder);
  CHECK(kind({"run", ""}) == NameKind::kLocal);
  CHECK(kind({"find", "/", "-newer", ""}) == NameKind::kPath);
  CHECK(kind({"find", "/", "-name", ""}) == NameKind::kNone);
  CHECK(kind({"sort", "/a"}) == NameKind::kPath);
  CHECK(kind({"df", ""}) == NameKind::kNone);
}

TEST_CASE("the file system that was typed is the one that is asked") {
  CHECK(candidates({"ls", "--pif", "/d", "/a"}).where == "/d");
  CHECK(candidates({"--pif=/d", "ls", "/a"}).where == "/d");
  CHECK(candidates({"ls", "--pif", "=", "/d", "/a"}).where == "/d");
}

TEST_CASE("a shell that splits at a colon is understood") {
  const Candidates split = candidates({"ls", "pif", ":", "/a"});
  CHECK(split.names == NameKind::kPath);
  CHECK(split.name == "/a");
  CHECK(candidates({"ls", "pif:/a"}).name == "pif:/a");
}

TEST_CASE("options of a tool are those of its help") {
  CHECK(candidates({"sort", "--wi"}).tool == "sort");
  const auto found = options_in_help("  -k,--key TEXT   as with --key-of\n  --width P\n  no--option --\n", "--");
  REQUIRE(found.size() == 3);
  CHECK(found[0].word == "--key");
  CHECK(found[1].word == "--key-of");
  CHECK(found[2].word == "--width");
}
