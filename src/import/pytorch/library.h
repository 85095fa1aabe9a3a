// The code of an archive: classes and functions by their qualified names, parsed when they are first asked for.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "import/pytorch/source.h"
#include "import/zip/archive.h"

namespace orknn::importer::pytorch {

class Library {
 public:
  // `root` is the archive's top folder with its slash ("model/"), or empty.
  Library(const zip::Archive& archive, std::string root) : archive_(archive), root_(std::move(root)) {}

  // "__torch__.a.b.C" is class C of code/__torch__/a/b.py; nullptr when there is none.
  Result<const Class*> find_class(std::string_view qualified);
  Result<const Function*> find_function(std::string_view qualified);
  // A class that the archive's code does not hold as such (old archives keep the methods of a module in a file of its own).
  void add_class(std::string qualified, Class definition);
  // The file's contents; nullptr when there is no such file.
  Result<const SourceFile*> file(const std::string& path);

 private:
  const zip::Archive& archive_;
  std::string root_;
  std::map<std::string, std::unique_ptr<SourceFile>, std::less<>> files_;
  std::map<std::string, Class, std::less<>> own_classes_;
  uint64_t total_bytes_ = 0;
};

}  // namespace orknn::importer::pytorch
