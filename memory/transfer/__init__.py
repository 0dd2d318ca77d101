"""Export and import of everything of a person.

export, export_format   read the rows; write them as JSON or Markdown, with the schemas that read them again
import_reader, imports  read and check a document; store it
json_reader             reads JSON that is larger than memory
sources                 exports of other programs, one module each
"""
