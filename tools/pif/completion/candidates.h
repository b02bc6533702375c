// Words that may end a command line that is being typed, from the commands' own options. Pure: it asks
// nobody.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace pif::cli {

struct Candidate {
  std::string word;
  std::string description;
};

// Names that may stand there, too.
enum class NameKind : std::uint8_t { kNone, kPath /* in the file system */, kLocal, kLocalFolder, kPathOrLocal };

struct Candidates {
  std::vector<Candidate> words;
  NameKind names = NameKind::kNone;
  std::string name;   // what is typed of the name
  std::string where;  // --pif, if that was typed
  std::string tool;   // not empty: options of this program, pif-TOOL, may stand there
};

// words: those behind "pif", as a shell has split them; the last one is being typed. tools: of other programs. A shell
// that splits at
// "=" and ":" is understood.
Candidates candidates_for(const CLI::App& app, const std::vector<std::string>& tools,
                          const std::vector<std::string>& words);

// "--a" and "--b" of the help text of a program.
std::vector<Candidate> options_in_help(const std::string& help, const std::string& start);

}  // namespace pif::cli
