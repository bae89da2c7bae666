"""Reading a project folder: ``load`` gives the compiled project, ``check`` all its mistakes."""

from infold.declare.load import check, load

__all__ = ["check", "load"]
