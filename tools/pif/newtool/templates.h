// The files of a new tool, from newtool/templates: @NAME@ stands for its name, @CHECK@ for what its test does.
#pragma once

namespace pif::cli::templates {

extern const char* const kFilter;
extern const char* const kTalking;
extern const char* const kCMake;
extern const char* const kTest;
extern const char* const kReadme;

}  // namespace pif::cli::templates
